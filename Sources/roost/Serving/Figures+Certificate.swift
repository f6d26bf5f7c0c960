import Gateway
import Ops

extension Gateway {
    /// None without TLS.
    var certificateFigures: [Figure] {
        guard let certificate else { return [] }
        return [
            Figure(
                "roost_tls_certificate_expiry_seconds", .gauge,
                "When the certificate that new connections are shown expires, in seconds since 1970.", certificate.ends)
        ]
    }
}

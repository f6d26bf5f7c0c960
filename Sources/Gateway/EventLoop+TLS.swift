import CWebSockets
import Hub

/// The loop's part in TLS: lws encrypts, and asks here what to present.
extension EventLoop {
    /// lws has made a server's SSL_CTX. Nonzero: it cannot be used.
    func prepare(_ context: UnsafeMutableRawPointer?) -> Int32 {
        roost_tls_prepare(context, presented)
    }

    /// For handshakes from now on.
    func present(_ certificate: Certificate) {
        self.certificate = certificate
        presented.pointee = certificate.pointer
    }

    /// On one loop, once a second: the others are told.
    func lookAfterCertificate() {
        guard index == 0, second % CertificateKeeper.interval == 0,
            let certificate = configuration.certificates?.look()
        else { return }
        present(certificate)
        for sibling in siblings { sibling.post(.present(certificate)) }
    }
}

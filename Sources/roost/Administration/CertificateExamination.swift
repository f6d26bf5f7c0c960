import ChangeFeed
import Gateway

/// What `roost doctor` says of the certificate that the hub shows.
struct CertificateExamination {
    let files: CertificateFiles?
    /// Seconds since 1970.
    let now: Int

    private static let subject = "certificate"
    private static let day = 86_400
    /// Days; the alert rules in config/prometheus warn as early.
    private static let ample = 14

    func run() -> Finding {
        guard let files else {
            return Finding(
                .good, Self.subject,
                "The hub speaks no TLS (tls.certificate is not set): let it be reached by a proxy that does.")
        }
        do {
            return finding(of: try Certificate(files), in: files)
        } catch {
            return Finding(.error, Self.subject, "\(error)")
        }
    }

    private func finding(of certificate: Certificate, in files: CertificateFiles) -> Finding {
        let path = files.certificate
        if let reproach = certificate.reproach(at: now) {
            return Finding(.error, Self.subject, "Clients refuse the certificate \(path): \(reproach); renew it.")
        }
        let days = (certificate.ends - now) / Self.day
        guard days >= Self.ample else {
            return Finding(
                .warning, Self.subject,
                "The certificate \(path) expires at \(certificate.expiry); renew it, and the hub shows the new one within "
                    + "seconds.")
        }
        return Finding(.good, Self.subject, "The certificate \(path) is good for \(days) days, and its key fits.")
    }
}

import Gateway
import Logging
import Settings

/// The certificate, read.
extension RoostConfiguration {
    /// Of the WebSocket's address (RFC 6455, section 3).
    var socketScheme: String { tlsCertificate == nil ? "ws" : "wss" }

    var pageScheme: String { tlsCertificate == nil ? "http" : "https" }

    /// Whether there is none, or one that can be used.
    func checkCertificate() throws {
        guard let files = certificateFiles else { return }
        do { _ = try Certificate(files) } catch { throw RunFailure("\(error)", .configuration) }
    }

    /// Nil where none is configured. A pair that cannot be used keeps the hub from starting.
    func openCertificate(logger: Logger) throws -> CertificateKeeper? {
        guard let files = certificateFiles else { return nil }
        do {
            return try CertificateKeeper(files, logger: logger)
        } catch {
            throw RunFailure("\(error)", .configuration)
        }
    }

    var certificateFiles: CertificateFiles? {
        guard let tlsCertificate, let tlsKey else { return nil }
        return CertificateFiles(certificate: tlsCertificate, key: tlsKey)
    }
}

import Glibc
package import Logging
import Synchronization

/// The certificate for new connections, reloaded when its files change.
///
/// An unusable pair is logged once, and the previous one stays. Connections keep the certificate that they began with.
package final class CertificateRefresher: Sendable {
    private struct State {
        var certificate: Certificate
        /// The files at the last attempt to load them, whatever its result.
        var tried: CertificateFiles.Version
        /// The files at the last check.
        var seen: CertificateFiles.Version
    }
    private let files: CertificateFiles
    private let state: Mutex<State>
    private let logger: Logger

    /// Seconds between checks of the files.
    static let interval: Int32 = 1

    package init(_ files: CertificateFiles, logger: Logger) throws(CertificateProblem) {
        self.files = files
        self.logger = logger
        let version = files.version
        let certificate = try Certificate(files)
        state = Mutex(State(certificate: certificate, tried: version, seen: version))
        warn(of: certificate)
    }

    package var certificate: Certificate { state.withLock { $0.certificate } }

    /// Reloads the files if they have changed and then stayed the same for one interval: a renewal writes two files,
    /// which do not match in between.
    ///
    /// - Returns: a new certificate to present.
    func look() -> Certificate? {
        let version = files.version
        let isDue = state.withLock { state in
            defer { state.seen = version }
            return version != state.tried && version == state.seen
        }
        return isDue ? reload() : nil
    }

    /// Reloads the files, changed or not.
    ///
    /// - Returns: the certificate to present; nil if the files hold no usable one.
    func reload() -> Certificate? {
        let version = files.version
        let certificate: Certificate
        do {
            certificate = try Certificate(files)
        } catch {
            state.withLock { $0.tried = version }
            logger.error("The certificate stays as it was. \(error)")
            return nil
        }
        state.withLock { state in
            state.tried = version
            state.certificate = certificate
        }
        logger.notice(
            "New connections are shown the certificate \(files.certificate) as it is now",
            metadata: ["expires": "\(certificate.expiry)"])
        warn(of: certificate)
        return certificate
    }

    private func warn(of certificate: Certificate) {
        guard let reproach = certificate.reproach(at: time(nil)) else { return }
        logger.warning("Clients will refuse the certificate \(files.certificate): \(reproach); renew it.")
    }
}

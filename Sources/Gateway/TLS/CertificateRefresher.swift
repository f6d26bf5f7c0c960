import Glibc
package import Logging
import Synchronization

/// The certificate that is presented to new connections, read again when its files change.
///
/// A pair that cannot be used is said once, and the one before it stays. Connections keep what they were made with.
package final class CertificateRefresher: Sendable {
    private struct State {
        var certificate: Certificate
        /// Of the files as they were tried last, with whatever result.
        var tried: CertificateFiles.Version
        /// Of the files as they were seen last.
        var seen: CertificateFiles.Version
    }
    private let files: CertificateFiles
    private let state: Mutex<State>
    private let logger: Logger

    /// Seconds between two looks at the files.
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

    /// Reads the files if they have changed and rested since the last look: whoever renews a pair writes two files, and
    /// between the two they do not fit.
    ///
    /// - Returns: a certificate that is to be presented from now on.
    func look() -> Certificate? {
        let version = files.version
        let isDue = state.withLock { state in
            defer { state.seen = version }
            return version != state.tried && version == state.seen
        }
        return isDue ? reload() : nil
    }

    /// Reads the files, changed or not.
    ///
    /// - Returns: a certificate that is to be presented from now on; nil where the files hold none that can be.
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

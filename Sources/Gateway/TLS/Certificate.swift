import CWebSockets
import Glibc
import Wire

/// A server's certificate with its chain and its private key, read from two PEM files and never changed.
///
/// `@unchecked Sendable`: the pointer and its target are constant, and OpenSSL counts references to the parts
/// atomically.
package final class Certificate: @unchecked Sendable {
    let pointer: OpaquePointer
    /// Both in seconds since 1970 (RFC 5280, section 4.1.2.5).
    package let begins: Int
    package let ends: Int

    package init(_ files: CertificateFiles) throws(CertificateProblem) {
        var problem = ROOST_CERTIFICATE_FINE
        guard let pointer = roost_certificate_read(files.certificate, files.key, &problem) else {
            throw CertificateProblem(problem, errno, files)
        }
        self.pointer = pointer
        begins = Int(roost_certificate_begins(pointer))
        ends = Int(roost_certificate_ends(pointer))
    }

    deinit { roost_certificate_free(pointer) }

    /// The expiry time, for people.
    package var expiry: String {
        let time = CivilTime(secondsSince1970: ends)
        return "\(time.day)T\(time.clock)Z"
    }

    /// The reason why clients will reject the certificate now; nil if there is none.
    ///
    /// - Parameter now: seconds since 1970.
    package func reproach(at now: Int) -> String? {
        if now >= ends { return "it has expired" }
        if now < begins { return "it is not valid yet" }
        return nil
    }
}

/// The paths of a certificate and its key: two PEM files, or one that holds both.
package struct CertificateFiles: Sendable {
    /// The server's own certificate first, then those that lead from it to a root.
    package let certificate: String
    package let key: String

    package init(certificate: String, key: String) {
        self.certificate = certificate
        self.key = key
    }

    /// Distinguishes one state of the files from the next, even if one file was moved over another.
    struct Version: Equatable {
        private let certificate: [Int]
        private let key: [Int]

        init(of files: CertificateFiles) {
            certificate = Self.marks(files.certificate)
            key = Self.marks(files.key)
        }

        /// Empty if the file does not exist.
        private static func marks(_ path: String) -> [Int] {
            var status = stat()
            guard stat(path, &status) == 0 else { return [] }
            return [
                Int(bitPattern: UInt(status.st_dev)), Int(bitPattern: UInt(status.st_ino)), Int(status.st_size),
                status.st_mtim.tv_sec, status.st_mtim.tv_nsec,
            ]
        }
    }

    var version: Version { Version(of: self) }
}

/// The reason why a certificate cannot be used; the description is the sentence to print.
package struct CertificateProblem: Error, CustomStringConvertible {
    package let description: String

    /// - Parameter number: an `errno`, if the problem has one.
    init(_ problem: roost_certificate_problem, _ number: Int32, _ files: CertificateFiles) {
        let reason = String(cString: strerror(number)).lowercased()
        let (certificate, key) = (files.certificate, files.key)
        description =
            switch problem {
            case ROOST_CERTIFICATE_UNREADABLE:
                "The certificate \(certificate) cannot be read: \(reason); correct tls.certificate, or the file's mode."
            case ROOST_CERTIFICATE_MALFORMED:
                "The file \(certificate) is not a certificate in PEM, or one of its chain is damaged; put the server's "
                    + "own certificate first, then its chain, and name that file in tls.certificate."
            case ROOST_KEY_UNREADABLE:
                "The key \(key) cannot be read: \(reason); correct tls.key, or the file's mode."
            case ROOST_KEY_MALFORMED:
                "The file \(key) is not a private key in PEM; name the key of \(certificate) in tls.key."
            case ROOST_KEY_ENCRYPTED:
                "The key \(key) is encrypted, and nobody is there to type its password; store it without one "
                    + "(openssl pkey -in FILE -out FILE)."
            case ROOST_KEY_OF_ANOTHER:
                "The key \(key) does not belong to the certificate \(certificate), which has to be the first in its "
                    + "file; name a pair in tls.certificate and tls.key."
            case ROOST_CERTIFICATE_WEAK:
                "OpenSSL does not allow the certificate \(certificate), because its key is too short or a signature in "
                    + "it is made with an old algorithm; get one with an ECDSA P-256 or RSA 2048 key and SHA-256."
            default:
                "The certificate \(certificate) cannot be used, because there is no memory for it; free some."
            }
    }
}

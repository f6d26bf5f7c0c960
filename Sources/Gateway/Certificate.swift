import CWebSockets
import Glibc
import Wire

/// A server's certificate with its chain and its private key, read from two PEM files and never changed.
///
/// `@unchecked Sendable`: the pointer is constant, and so is what it points to; OpenSSL counts the references to the parts
/// atomically.
package final class Certificate: @unchecked Sendable {
    let pointer: OpaquePointer
    /// Seconds since 1970 (RFC 5280, section 4.1.2.5), both.
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

    /// When it expires, for people.
    package var expiry: String {
        let time = CivilTime(secondsSince1970: ends)
        return "\(time.day)T\(time.clock)Z"
    }

    /// What clients will have against it now; nil if that is nothing.
    ///
    /// - Parameter now: seconds since 1970.
    package func reproach(at now: Int) -> String? {
        if now >= ends { return "it has expired" }
        if now < begins { return "it is not valid yet" }
        return nil
    }
}

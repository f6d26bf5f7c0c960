import CWebSockets
import Glibc

/// Why a certificate cannot be used; the description is the sentence to print.
package struct CertificateProblem: Error, CustomStringConvertible {
    package let description: String

    /// - Parameter number: an `errno`, where the problem has one.
    init(_ problem: roost_certificate_problem, _ number: Int32, _ files: CertificateFiles) {
        let reason = String(cString: strerror(number)).lowercased()
        let (certificate, key) = (files.certificate, files.key)
        description =
            switch problem {
            case ROOST_CERTIFICATE_UNREADABLE:
                "The certificate \(certificate) cannot be read: \(reason); correct tls.certificate, or the file's mode."
            case ROOST_CERTIFICATE_MALFORMED:
                "The file \(certificate) is no certificate in PEM, or one of its chain is damaged; put the server's own "
                    + "certificate first, then its chain, and name that file in tls.certificate."
            case ROOST_KEY_UNREADABLE:
                "The key \(key) cannot be read: \(reason); correct tls.key, or the file's mode."
            case ROOST_KEY_MALFORMED:
                "The file \(key) is no private key in PEM; name the key of \(certificate) in tls.key."
            case ROOST_KEY_ENCRYPTED:
                "The key \(key) is encrypted, and nobody is there to type its password; store it without one "
                    + "(openssl pkey -in FILE -out FILE)."
            case ROOST_KEY_OF_ANOTHER:
                "The key \(key) is not that of the certificate \(certificate), which has to be the first in its file; "
                    + "name a pair in tls.certificate and tls.key."
            case ROOST_CERTIFICATE_WEAK:
                "OpenSSL does not allow the certificate \(certificate), because its key is too short or a signature in "
                    + "it is made with an old algorithm; get one with an ECDSA P-256 or RSA 2048 key and SHA-256."
            default:
                "The certificate \(certificate) cannot be used, because there is no memory for it; free some."
            }
    }
}

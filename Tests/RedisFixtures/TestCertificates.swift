import Foundation

/// A certificate authority and a server's certificate for `localhost` and 127.0.0.1, made by `openssl` in a folder that stays until the
/// system clears its temporary files.
package struct TestCertificates: Sendable {
    package let authority: String
    package let certificate: String
    package let key: String

    package init() throws {
        let folder = NSTemporaryDirectory() + "roost-certificates-" + UUID().uuidString.prefix(8)
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        authority = folder + "/ca.crt"
        certificate = folder + "/server.crt"
        key = folder + "/server.key"
        let ec = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
        try runForFixture(
            ["openssl", "req", "-x509", "-subj", "/CN=Roost's tests", "-keyout", folder + "/ca.key", "-out", authority]
                + ec)
        try runForFixture(
            [
                "openssl", "req", "-x509", "-subj", "/CN=localhost", "-addext",
                "subjectAltName=DNS:localhost,IP:127.0.0.1", "-addext", "basicConstraints=critical,CA:false", "-CA",
                authority, "-CAkey", folder + "/ca.key", "-keyout", key, "-out", certificate,
            ] + ec)
    }
}

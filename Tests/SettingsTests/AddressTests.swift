import Settings
import Testing

/// Settings that are addresses, origins and permissions: what is taken for one.
@Suite("Addresses, origins and permissions")
struct AddressTests {
    @Test(
        "networks",
        arguments: [
            "127.0.0.1", "10.0.0.0/8", "0.0.0.0/0", "::1", "fd00::/8", "::/0", "2001:db8::1/128", "unix",
            "::1, unix ::2",
        ])
    func networks(text: String) throws {
        let words = try load(["ROOST_HTTP_TRUSTED_PROXIES": text]).trustedProxies
        #expect(words == text.split { " ,".contains($0) }.map(String.init))
    }

    @Test(
        "what is no network",
        arguments: [
            "10.0.0.0/33", "10.0.0", "fe80::/129", "example.com", "10.0.0.0/", "10.0.0.0/-1", "10.0.0.0/+8", "unix:/x",
            ",",
        ])
    func noNetworks(text: String) {
        refused(["ROOST_HTTP_TRUSTED_PROXIES": text], "expected addresses and networks")
    }

    @Test(
        "origins",
        arguments: [
            "https://a.example.com", "https://*.example.com:8443", "http://[::1]:3000", "capacitor://localhost", "null",
        ])
    func origins(text: String) throws {
        #expect(try load(["ROOST_HTTP_ORIGINS": text]).httpOrigins == [text])
    }

    @Test(
        "what is no origin",
        arguments: [
            "example.com", "https://example.com/", "https://*", "*", "https://a.*.example.com",
            "https://example.com:65536",
            "https://user@example.com", "https://", "//example.com",
        ])
    func noOrigins(text: String) {
        refused(["ROOST_HTTP_ORIGINS": text], "expected origins such as")
    }

    @Test("permissions", arguments: [("0660", 0o660), ("666", 0o666), ("0600", 0o600)])
    func modes(text: String, mode: Int) throws {
        #expect(try load(["ROOST_HTTP_SOCKET_MODE": text]).httpSocketMode == mode)
    }

    @Test("what are no permissions", arguments: ["0680", "rw", "60", "1660", "00660", "-660"])
    func noModes(text: String) {
        refused(["ROOST_HTTP_SOCKET_MODE": text], "expected three octal digits")
    }

    @Test("the path of a socket is as long as the kernel takes it")
    func socketPath() throws {
        let longest = "/" + String(repeating: "x", count: 106)
        #expect(try load(["ROOST_HTTP_SOCKET": longest]).httpSocket == longest)
        refused(["ROOST_HTTP_SOCKET": longest + "x"], "107 bytes")
    }

    @Test("a certificate without its key, and a key without its certificate")
    func halfAPair() {
        refused(["ROOST_TLS_CERTIFICATE": "a"], "tls.key is not; set both")
        refused(["ROOST_TLS_KEY": "b"], "tls.certificate is not; set both")
    }

    private func load(_ environment: [String: String]) throws -> RoostConfiguration {
        try RoostConfiguration.load(environment: environment, files: [])
    }

    private func refused(_ environment: [String: String], _ words: String) {
        #expect { try load(environment) } throws: { "\($0)".contains(words) }
    }
}

@Suite("Hosts and URLs")
struct HostTests {
    private func isTaken(_ variable: String, _ value: String) -> Bool {
        do {
            _ = try RoostConfiguration.load(environment: [variable: value], files: [])
            return true
        } catch {
            return false
        }
    }

    @Test(
        "a host",
        arguments: [
            ("127.0.0.1", true), ("0.0.0.0", true), ("::", true), ("::1", true), ("fe80::1%eth0", true),
            ("localhost", true), ("db_1.internal", true), ("a-b.example.org", true), ("300.0.0.1", false),
            ("1.2.3", false), ("127.0.0.1:4000", false), ("[::1]", false), ("a b", false), ("a/b", false),
            ("-a.org", false), ("a..b", false), ("http://a", false), ("*", false),
        ])
    func host(text: String, isRight: Bool) {
        #expect(isTaken("ROOST_HTTP_HOST", text) == isRight)
    }

    @Test(
        "a URL",
        arguments: [
            ("https://keys.example.org/jwks.json?k=1#f", true), ("http://k", true), ("http://u:p@k:81/", true),
            ("https://[::1]:8443/keys", true), ("https://", false), ("https:///keys", false), ("ftp://k", false),
            ("https://k:0", false), ("https://k:port/", false), ("https://k:70000", false), ("https://[::1", false),
            ("https://a b/", false), ("https://u:p@/", false), ("keys.example.org", false),
        ])
    func url(text: String, isRight: Bool) {
        #expect(isTaken("ROOST_JWKS_URL", text) == isRight)
    }
}

import Settings
import Testing

@Suite("Hosts and URLs")
struct HostTests {
    private func isTaken(_ variable: String, _ value: String) async -> Bool {
        do {
            _ = try await RoostConfiguration.load(environment: [variable: value], files: [])
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
    func host(text: String, isRight: Bool) async {
        #expect(await isTaken("ROOST_HTTP_HOST", text) == isRight)
    }

    @Test(
        "a URL",
        arguments: [
            ("https://keys.example.org/jwks.json?k=1#f", true), ("http://k", true), ("http://u:p@k:81/", true),
            ("https://[::1]:8443/keys", true), ("https://", false), ("https:///keys", false), ("ftp://k", false),
            ("https://k:0", false), ("https://k:port/", false), ("https://k:70000", false), ("https://[::1", false),
            ("https://a b/", false), ("https://u:p@/", false), ("keys.example.org", false),
        ])
    func url(text: String, isRight: Bool) async {
        #expect(await isTaken("ROOST_JWKS_URL", text) == isRight)
    }
}

import Ops
import Testing

@Suite struct OpsAccessTests {
    private let local = OpsAccess(host: "127.0.0.1", token: nil)
    private let token = "an-operator-shows-this-token-0123456789"

    private func isForbidden(_ verdict: OpsAccess.Verdict) -> Bool {
        if case .forbidden = verdict { true } else { false }
    }

    @Test(arguments: ["127.0.0.1:4001", "127.0.0.1", "localhost:4001", "LOCALHOST:9", "[::1]:4001", "127.1.2.3:80"])
    func namesOfTheMachine(host: String) {
        #expect(local.judgePage(host: host, origin: nil, token: nil) == .allowed)
        #expect(local.judgePage(host: host, origin: "http://\(host)", token: nil) == .allowed)
        #expect(local.judgePage(host: host, origin: "https://\(host.lowercased())", token: nil) == .allowed)
    }

    @Test(
        arguments: [
            "evil.example", "evil.example:4001", "127.0.0.1.evil.example", "localhost.evil.example:4001",
            "127.0.0.1@evil",
            "10.0.0.1:4001", "0.0.0.0:4001", "127.0.0.256", "127.0.0", "[::2]:4001", "[::1", "", ":4001", nil,
        ])
    func otherNames(host: String?) {
        #expect(isForbidden(local.judgePage(host: host, origin: nil, token: nil)))
        // The rest of the port is for probes, too, which name no host; browsers always do.
        #expect(isForbidden(local.judgePort(host: host)) == (host != nil))
    }

    @Test func theWholePortIsForNamesOfTheMachineWhileNothingElseGuardsIt() {
        for host in ["127.0.0.1:4001", "localhost", "[::1]:4001"] { #expect(local.judgePort(host: host) == .allowed) }
        #expect(OpsAccess(host: "127.0.0.1", token: token).judgePort(host: "ops.example.com") == .allowed)
        #expect(OpsAccess(host: "0.0.0.0", token: nil).judgePort(host: "10.1.2.3:4001") == .allowed)
    }

    @Test(
        arguments: [
            "https://evil.example", "http://127.0.0.1:4002", "http://localhost:4001", "null", "", "127.0.0.1:4001",
            "http://127.0.0.1:4001/", "http://127.0.0.1:4001.evil.example",
        ])
    func pagesOfOthers(origin: String) {
        #expect(isForbidden(local.judgePage(host: "127.0.0.1:4001", origin: origin, token: nil)))
    }

    @Test func elsewhereATokenIsAskedFor() {
        let open = OpsAccess(host: "0.0.0.0", token: nil)
        #expect(isForbidden(open.judgePage(host: "127.0.0.1:4001", origin: nil, token: nil)))
        #expect(open.judgeFigures(token: nil) == .allowed)
        let guarded = OpsAccess(host: "0.0.0.0", token: token)
        #expect(guarded.judgePage(host: "ops.example.org", origin: "https://ops.example.org", token: token) == .allowed)
    }

    @Test(arguments: [
        nil, "", "x", "an-operator-shows-this-token-012345678", "an-operator-shows-this-token-0123456780",
    ])
    func aWrongToken(given: String?) {
        for host in ["127.0.0.1", "0.0.0.0"] {
            let access = OpsAccess(host: host, token: token)
            #expect(access.judgePage(host: "127.0.0.1:4001", origin: nil, token: given) == .needsToken)
            #expect(access.judgeFigures(token: given) == .needsToken)
        }
    }
}

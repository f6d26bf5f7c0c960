import Gateway
import Glibc
import HTTP
import Hub
import Testing
import Wire

/// Which requests for a WebSocket are let in. They come by a Unix domain socket, behind a proxy that says for whom.
@Suite final class AdmissionTests {
    private struct Tokens: TokenVerifier {
        func verifyToken(_ token: String, at now: HubTime) throws(Refusal) -> Claims {
            switch token {
            case "late": throw .tokenExpired(secondsAgo: 5)
            case "bad": throw .signatureInvalid
            default:
                return Claims(role: "authenticated", subject: Name(token), expiresAt: 10_000, json: Array("{}".utf8))
            }
        }
    }

    private static let now = HubTime(monotonic: 0, unix: 1_000_000)
    private static let upgrade = """
        Upgrade: websocket
        Connection: Upgrade
        Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==
        Sec-WebSocket-Version: 13
        """
    private let fd: Int32 = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)

    deinit { close(fd) }

    private static func rules(_ change: (inout GatewayRules) -> Void = { _ in }) -> GatewayRules {
        var rules = GatewayRules()
        rules.trustedProxies = TrustedProxies(["unix"])
        change(&rules)
        return rules
    }

    private func admission(_ rules: GatewayRules = rules()) -> Admission {
        Admission(
            rules, verifier: Tokens(), connections: ConnectionLimits(limits: rules.limits),
            failing: FailingAddresses(allowance: rules.failuresPerMinute))
    }

    private func head(
        _ target: String = "/realtime/v1/websocket?apikey=ann", fields: String = upgrade,
        from address: String = "192.0.2.1"
    ) throws -> HTTPHead {
        var parser = HTTPHeadParser(limits: HTTPLimits())
        let lines = "GET \(target) HTTP/1.1\nHost: a\nX-Forwarded-For: \(address)\n\(fields)\n\n"
        let text = Array(lines.replacing("\n", with: "\r\n").utf8)
        let progress = text.withUnsafeBytes { parser.parse($0) }
        guard case .complete(let head, _) = progress else {
            throw RequestUnread(progress: "\(progress)")
        }
        return head
    }

    private struct RequestUnread: Error { let progress: String }

    /// `admitted` and who, or the status.
    private func told(_ verdict: Admission.Verdict) -> String {
        switch verdict {
        case .admitted(let client): "admitted \(client.claims.subject ?? "") v\(client.version == .v1 ? 1 : 2)"
        case .refused(let denial): "\(denial.response.status)" + (denial.limit == nil ? "" : " for a limit")
        }
    }

    @Test(arguments: [
        ("/other?apikey=ann", upgrade, "404", Admission.Reason.path),
        ("/realtime/v1/websocket?apikey=ann", upgrade + "\nOrigin: https://other.example", "403", .origin),
        ("/realtime/v1/websocket?apikey=ann", upgrade.replacing("13", with: "12"), "426", .handshake),
        (
            "/realtime/v1/websocket?apikey=ann", upgrade.replacing("Connection: Upgrade", with: "A: b"), "400",
            .handshake
        ),
        ("/realtime/v1/websocket?apikey=ann&vsn=3.0.0", upgrade, "403", .version),
        ("/realtime/v1/websocket", upgrade, "401", .keyMissing),
        ("/realtime/v1/websocket?apikey=bad", upgrade, "401", .token),
        ("/realtime/v1/websocket?apikey=late", upgrade, "401", .token),
    ])
    func whatSpeaksAgainstARequestIsSaidAndCounted(
        _ target: String, _ fields: String, _ status: String, _ reason: Admission.Reason
    ) throws {
        var admission = admission(Self.rules { $0.origins = AllowedOrigins(["https://app.example"]) })
        #expect(try told(admission.judge(head(target, fields: fields), by: fd, at: Self.now)) == status)
        #expect(admission.refused == [reason: 1])
    }

    @Test(arguments: [
        ("/socket/websocket?apikey=ann", upgrade, "admitted ann v1"),
        ("/realtime/v1/websocket?apikey=ann&vsn=2.0.0", upgrade, "admitted ann v2"),
        ("/realtime/v1/websocket?apikey=ann", upgrade + "\nAuthorization: Bearer bob", "admitted bob v1"),
        ("/realtime/v1/websocket?apikey=ann", upgrade + "\nAuthorization: Bearer late", "admitted ann v1"),
        ("/realtime/v1/websocket?apikey=ann", upgrade + "\nAuthorization: Bearer bad", "401"),
    ])
    func theTokenThatCountsSaysWhoItIs(_ target: String, _ fields: String, _ expected: String) throws {
        var admission = admission()
        #expect(try told(admission.judge(head(target, fields: fields), by: fd, at: Self.now)) == expected)
    }

    @Test func aPageIsToldFromAProgramByItsOrigin() throws {
        var admission = admission()
        for (fields, isPage) in [(Self.upgrade, false), (Self.upgrade + "\nOrigin: https://app.example", true)] {
            guard case .admitted(let client) = admission.judge(try head(fields: fields), by: fd, at: Self.now) else {
                Issue.record("it is let in")
                continue
            }
            #expect(client.isPage == isPage)
        }
    }

    @Test func whoIsLetInCountsUntilItIsGivenBack() throws {
        var admission = admission(
            Self.rules {
                $0.limits.connections = 2
                $0.limits.connectionsPerAddress = 1
            })
        let first = admission.judge(try head(), by: fd, at: Self.now)
        #expect(told(first) == "admitted ann v1")
        #expect(try told(admission.judge(head(), by: fd, at: Self.now)) == "429 for a limit")
        #expect(try told(admission.judge(head(from: "192.0.2.2"), by: fd, at: Self.now)) == "admitted ann v1")
        #expect(try told(admission.judge(head(from: "192.0.2.3"), by: fd, at: Self.now)) == "503 for a limit")
        #expect(admission.refused == [.limit: 2])
        guard case .admitted(let client) = first else { return }
        admission.abandon(client)
        #expect(try told(admission.judge(head(), by: fd, at: Self.now)) == "admitted ann v1")
    }

    @Test func aUserIsGivenBackWithItsUpgrade() throws {
        var admission = admission(Self.rules { $0.limits.connectionsPerUser = 1 })
        let first = admission.judge(try head(), by: fd, at: Self.now)
        #expect(try told(admission.judge(head(), by: fd, at: Self.now)) == "429 for a limit")
        guard case .admitted(let client) = first else { return }
        admission.abandon(client)
        #expect(try told(admission.judge(head(), by: fd, at: Self.now)) == "admitted ann v1")
    }

    @Test func anAddressThatKeepsFailingIsNotHeardAnyMore() throws {
        var admission = admission(Self.rules { $0.failuresPerMinute = 2 })
        let bad = "/realtime/v1/websocket?apikey=bad"
        for _ in 0..<2 { #expect(try told(admission.judge(head(bad), by: fd, at: Self.now)) == "401") }
        #expect(try told(admission.judge(head(), by: fd, at: Self.now)) == "429", "with a good token, too")
        #expect(try told(admission.judge(head(from: "192.0.2.2"), by: fd, at: Self.now)) == "admitted ann v1")
        #expect(admission.refused == [.token: 2, .limit: 1])
    }

    @Test func aHubThatDrainsLetsNobodyIn() throws {
        var admission = admission()
        admission.drain()
        #expect(try told(admission.judge(head(), by: fd, at: Self.now)) == "503")
        #expect(admission.refused == [.draining: 1])
    }

    /// A client comes back from a connection that is refused, and not always from a join.
    @Test func aHubThatCannotServeRowsLetsNobodyIn() throws {
        let rules = Self.rules { $0.limits.connectionsPerUser = 1 }
        var admission = Admission(
            rules, verifier: Tokens(), connections: ConnectionLimits(limits: rules.limits),
            failing: FailingAddresses(allowance: 0), requiresFeed: true)
        let bad = "/realtime/v1/websocket?apikey=bad"
        #expect(try told(admission.judge(head(bad), by: fd, at: Self.now)) == "401", "what is wrong is said")
        #expect(try told(admission.judge(head(), by: fd, at: Self.now)) == "503")
        admission.feed(isReady: true)
        #expect(try told(admission.judge(head(), by: fd, at: Self.now)) == "admitted ann v1", "and was not counted")
        admission.feed(isReady: false)
        #expect(try told(admission.judge(head("/realtime/v1/websocket?apikey=bob"), by: fd, at: Self.now)) == "503")
        #expect(admission.refused == [.token: 1, .database: 2])
        var other = self.admission()
        other.feed(isReady: false)
        #expect(try told(other.judge(head(), by: fd, at: Self.now)) == "admitted ann v1")
    }

    @Test func otherRulesHoldFromHereOn() throws {
        var admission = admission()
        let fields = Self.upgrade + "\nOrigin: https://other.example"
        #expect(try told(admission.judge(head(fields: fields), by: fd, at: Self.now)) == "admitted ann v1")
        admission.adopt(Self.rules { $0.origins = AllowedOrigins(["https://app.example"]) })
        #expect(try told(admission.judge(head(fields: fields), by: fd, at: Self.now)) == "403")
    }

    @Test func whoAsksForNoUpgradeIsToldWhatIsWrongWithItsToken() throws {
        let admission = admission()
        #expect(try admission.tokenRefusal(of: head("/?apikey=ann"), at: Self.now) == nil)
        #expect(try admission.tokenRefusal(of: head("/"), at: Self.now) == nil)
        #expect(try admission.tokenRefusal(of: head("/?apikey=bad"), at: Self.now)?.status == 401)
        #expect(admission.refused.isEmpty)
    }
}

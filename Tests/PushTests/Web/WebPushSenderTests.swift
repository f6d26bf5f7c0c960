import Hub
import Signatures
import Testing
import Wire

@testable import Push

struct WebPushSenderTests {
    private static let hour: Int64 = 3_600_000

    private static func bench(_ change: (inout WebPushConfiguration) -> Void = { _ in }) throws -> SenderBench {
        let key = try VAPIDKey(
            privateKey: "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw", subject: "mailto:ops@example.com")
        var configuration = WebPushConfiguration(key: key)
        change(&configuration)
        return SenderBench(WebPushDialect(configuration))
    }

    private static func push(
        to endpoint: String, _ payload: String = "{\"title\":\"Hello\",\"body\":\"World\"}", priority: Int = 10,
        collapseID: String? = nil, registeredAt: Int64? = nil, seconds: Int64 = 86_400
    ) throws -> Push {
        let token = try #require(PushToken(endpoint, of: .web))
        let point = Base64URL.decode(
            "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4".utf8)
        let keys = WebPushKeys(publicKey: try #require(point), secret: [UInt8](repeating: 1, count: 16))
        let end = Samples.start.unix + seconds * 1000
        return Push(
            to: .device(PushDestination(token: token, bundle: "")), type: .alert, priority: priority,
            expiration: end / 1000,
            collapseID: collapseID, payload: Array(payload.utf8), registeredAt: registeredAt, keys: keys, deadline: end)
    }

    @Test func aRequestSaysHowLongAndHowSoon() throws {
        var bench = try Self.bench()
        bench.add(try Self.push(to: "https://fcm.googleapis.com/fcm/send/one:two", collapseID: "conversation 1"))
        bench.connect()
        let request = try #require(bench.transport.posts.last?.request.request)
        #expect(request.headers[":path"] == "/fcm/send/one:two")
        #expect(request.headers["ttl"] == "86400")
        #expect(request.headers["urgency"] == "high")
        #expect(request.headers["topic"]?.utf8.count == 32)
        #expect(request.headers["content-encoding"] == "aes128gcm")
        #expect(request.headers["content-length"] == String(request.body.count))
        #expect(request.headers["authorization"]?.hasPrefix("vapid t=") == true)
        #expect(!request.indexesAll)
        bench.answer(201)
        #expect(bench.outcomes.map(\.outcome) == [.delivered])
    }

    /// 404 and 410 are about the subscription as it was registered when the message was addressed.
    @Test(arguments: [404, 410])
    func aSubscriptionThatIsGoneIsDropped(_ status: Int) throws {
        var bench = try Self.bench()
        bench.add(try Self.push(to: "https://fcm.googleapis.com/fcm/send/1", registeredAt: 1000))
        bench.connect()
        bench.answer(status)
        #expect(bench.outcomes.map(\.outcome) == [.unregistered(since: 1001)])
    }

    @Test func aServiceThatTakesLessGetsLess() throws {
        var bench = try Self.bench()
        let body = String(repeating: "a", count: 1000)
        bench.add(try Self.push(to: "https://fcm.googleapis.com/fcm/send/1", "{\"title\":\"T\",\"body\":\"\(body)\"}"))
        bench.connect()
        let first = try #require(bench.transport.posts.last?.request.request.body.count)
        bench.answer(413)
        let second = try #require(bench.transport.posts.last?.request.request.body.count)
        #expect((first - 510...first - 480).contains(second))
        bench.answer(201)
        #expect(bench.outcomes.map(\.outcome) == [.delivered])
    }

    /// What is too large however short it is ends, and is not sent for ever.
    @Test func aServiceThatTakesNothingIsNotAskedForEver() throws {
        var bench = try Self.bench()
        bench.add(try Self.push(to: "https://fcm.googleapis.com/fcm/send/1"))
        bench.connect()
        for _ in 0..<10 { bench.answer(413) }
        #expect(bench.transport.posts.count == 3)
        #expect(bench.outcomes.map(\.outcome) == [.refused(status: 413, reason: "")])
    }

    @Test func theServicesClockIsTakenOnce() throws {
        var bench = try Self.bench()
        bench.add(try Self.push(to: "https://fcm.googleapis.com/fcm/send/1"))
        bench.connect()
        let date = bench.now.unix + 30 * Self.hour
        bench.answer(401, date: date)
        #expect(bench.transport.posts.count == 2)
        bench.answer(201)
        #expect(bench.outcomes.map(\.outcome) == [.delivered])
    }

    /// One browser subscribed for another key: the others of its service go on.
    @Test(arguments: [401, 403])
    func aKeyThatIsRefusedConcernsOneSubscription(_ status: Int) throws {
        var bench = try Self.bench()
        bench.add(try Self.push(to: "https://fcm.googleapis.com/fcm/send/1"))
        bench.connect()
        bench.answer(status, date: bench.now.unix)
        #expect(bench.outcomes.map(\.outcome) == [.badToken(reason: "status \(status)")])
        #expect(bench.notices.contains { $0.text.contains("GET /api/push/key") })
        bench.add(try Self.push(to: "https://fcm.googleapis.com/fcm/send/2"))
        bench.answer(201)
        #expect(bench.outcomes.last?.outcome == .delivered)
    }

    @Test func retryAfterIsKept() throws {
        var bench = try Self.bench()
        bench.add(try Self.push(to: "https://fcm.googleapis.com/fcm/send/1"))
        bench.connect()
        bench.answer(429, retryAfter: 60_000)
        bench.pass(seconds: 59)
        #expect(bench.transport.posts.count == 1)
        bench.pass(seconds: 2)
        #expect(bench.transport.posts.count == 2)
    }

    /// A browser would show it twice.
    @Test func whatWasNotAnsweredIsNotSentAgain() throws {
        var bench = try Self.bench()
        bench.add(try Self.push(to: "https://fcm.googleapis.com/fcm/send/1"))
        bench.connect()
        bench.transport.lose(1)
        bench.turn()
        #expect(bench.outcomes.map(\.outcome) == [.unanswered])
        #expect(bench.transport.posts.count == 1)
    }

    @Test func whatWasRegisteredUnderOtherRulesIsNotReached() throws {
        var bench = try Self.bench()
        for url in ["https://127.0.0.1/aaaaaaaa", "https://push.example.com:8443/1", "https://169.254.169.254/latest"] {
            bench.add(try Self.push(to: url))
        }
        #expect(bench.outcomes.count == 3 && bench.transport.opened.isEmpty)
        for (_, outcome) in bench.outcomes {
            guard case .badToken = outcome else {
                Issue.record("\(outcome)")
                continue
            }
        }
    }
}

struct StrangerTests {
    private static func push(_ number: Int) throws -> Push {
        let token = try #require(PushToken("https://service\(number).example.com/push/1", of: .web))
        let keys = WebPushKeys(
            publicKey: [4] + [UInt8](repeating: 0, count: 64), secret: [UInt8](repeating: 1, count: 16))
        return Push(
            to: .device(PushDestination(token: token, bundle: "")), type: .alert, priority: 10, expiration: 0,
            payload: Array("{}".utf8), keys: keys, deadline: Samples.start.unix + 86_400_000)
    }

    private static func bench(queue: Int = 10_000) throws -> SenderBench {
        let key = try VAPIDKey(
            privateKey: "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw", subject: "mailto:ops@example.com")
        var configuration = WebPushConfiguration(key: key)
        configuration.limits.queue = queue
        return SenderBench(WebPushDialect(configuration))
    }

    /// Somebody registers a thousand servers, none of which ever answers.
    @Test func oneUserCannotOpenAThousandConnections() throws {
        var bench = try Self.bench()
        for number in 0..<1000 { bench.add(try Self.push(number)) }
        #expect(bench.transport.opened.count == 32)
        #expect(bench.outcomes.map(\.outcome) == [PushOutcome](repeating: .overflow, count: 900))
        let token = try #require(PushToken("https://fcm.googleapis.com/fcm/send/1", of: .web))
        let point = Base64URL.decode(
            "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4".utf8)
        bench.add(
            Push(
                to: .device(PushDestination(token: token, bundle: "")), type: .alert, priority: 10, expiration: 0,
                payload: [1],
                keys: WebPushKeys(publicKey: try #require(point), secret: [UInt8](repeating: 1, count: 16)),
                deadline: Samples.start.unix + 86_400_000))
        #expect(bench.transport.opened.last?.server == .web(origin: "https://fcm.googleapis.com"))
        bench.connect()
        bench.answer(201)
        #expect(bench.outcomes.last?.outcome == .delivered)
        // What waits for strangers does not wait for long, and then there is nothing left of them.
        bench.pass(seconds: 601)
        #expect(bench.outcomes.count(where: { $0.outcome == .expired }) == 100)
    }

    @Test func strangersHaveAQuarterOfTheQueue() throws {
        var bench = try Self.bench(queue: 100)
        for number in 0..<40 { bench.add(try Self.push(number)) }
        #expect(bench.outcomes.map(\.outcome) == [PushOutcome](repeating: .overflow, count: 15))
    }

    /// An idle connection makes room for the next.
    @Test func idleConnectionsAreClosedForOthers() throws {
        var bench = try Self.bench()
        for number in 0..<40 {
            bench.add(try Self.push(number))
            bench.connect()
            bench.turn()
        }
        // No key of these is one, so that nothing leaves and all are idle.
        #expect(bench.transport.opened.count == 40)
        #expect(bench.transport.closed.count == 8)
        #expect(bench.sender.servers.count == 32)
    }
}

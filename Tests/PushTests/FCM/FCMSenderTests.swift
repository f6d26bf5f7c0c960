import Hub
import TestSupport
import Testing
import Wire

@testable import Push

/// The sender with FCM's dialect: access tokens that are fetched, and what is at most sent once.
struct FCMSenderTests {
    private struct Bench {
        var sender: Sender<FCMTransport>
        let transport = FCMTransport()
        var now = Samples.start
        var outcomes: [PushOutcome] = []

        init() throws {
            sender = Sender(
                FCMDialect(FCMConfiguration(account: try Samples.account())), over: transport,
                random: SeededGenerator(seed: 1))
        }

        mutating func turn() {
            repeat {
                let events = transport.events
                transport.events = []
                for (connection, event) in events { sender.handle(event, on: connection, at: now) }
                sender.advance(to: now)
            } while !transport.events.isEmpty
            outcomes += sender.takeFinished().map(\.1)
        }

        mutating func pass(seconds: Int64) {
            now = now.advanced(by: seconds * 1000)
            turn()
        }

        mutating func add(_ number: Int = 0, registeredAt: Int64? = nil) throws {
            let token = try #require(PushToken("token-\(number):0123456789", of: .fcm))
            sender.add(
                Push(
                    to: .device(PushDestination(token: token, bundle: "")), type: .alert, priority: 10, expiration: 0,
                    payload: Array("{\"data\":{}}".utf8), registeredAt: registeredAt, deadline: now.unix + 3_600_000),
                at: now)
            turn()
        }

        /// Answers what is on its way.
        mutating func answer(_ status: Int, _ body: String = "{}") {
            for (connection, ticket) in transport.onTheirWay {
                transport.events.append((connection, .answered(ticket, Answer(status: status, body: Array(body.utf8)))))
            }
            transport.onTheirWay = []
            turn()
        }
    }

    private final class FCMTransport: PushTransport {
        var grants = 0
        var posts: [PushRequest] = []
        var onTheirWay: [(UInt64, SendQueue.Ticket)] = []
        var events: [(connection: UInt64, event: TransportEvent)] = []
        var tokenStatus = 200
        private var servers: [UInt64: ServerName] = [:]

        func open(to server: ServerName) -> UInt64? {
            let connection = UInt64(servers.count + 1)
            servers[connection] = server
            events.append((connection, .opened))
            return connection
        }

        func post(_ request: PushRequest, _ ticket: SendQueue.Ticket, on connection: UInt64) -> Bool {
            guard servers[connection] == .fcmTokens else {
                posts.append(request)
                onTheirWay.append((connection, ticket))
                return true
            }
            grants += 1
            let body = "{\"access_token\":\"ya29.\(grants)\",\"expires_in\":3599}"
            events.append((connection, .answered(ticket, Answer(status: tokenStatus, body: Array(body.utf8)))))
            return true
        }

        func cancel(_ ticket: SendQueue.Ticket, on connection: UInt64) -> Bool? { true }
        func ping(_ connection: UInt64) { events.append((connection, .pong)) }
        func close(_ connection: UInt64) {}
        func limit(of connection: UInt64) -> Int { 100 }
    }

    @Test func nothingLeavesBeforeThereIsAToken() throws {
        var bench = try Bench()
        bench.transport.tokenStatus = 503
        try bench.add()
        #expect(bench.transport.posts.isEmpty && bench.transport.grants == 1)
        bench.transport.tokenStatus = 200
        bench.pass(seconds: 1)
        #expect(bench.transport.posts.first?.headers["authorization"] == "Bearer ya29.2")
        bench.answer(200)
        #expect(bench.outcomes == [.delivered])
    }

    @Test func aTokenThatIsRefusedIsRenewedOnce() throws {
        var bench = try Bench()
        for number in 0..<20 { try bench.add(number) }
        bench.answer(200)
        bench.answer(401)
        #expect(bench.transport.grants == 2, "one for all that were refused with the first")
        bench.answer(200)
        #expect(bench.outcomes == Array(repeating: .delivered, count: 20))
    }

    @Test func aDeviceThatIsGoneIsDroppedAsItWasRegistered() throws {
        var bench = try Bench()
        try bench.add(registeredAt: 5000)
        bench.answer(404, "{\"error\":{\"details\":[{\"errorCode\":\"UNREGISTERED\"}]}}")
        #expect(bench.outcomes == [.unregistered(since: 5001)])
    }

    @Test func whatIsNotAnsweredIsNotSentAgain() throws {
        var bench = try Bench()
        try bench.add()
        bench.pass(seconds: 21)
        #expect(bench.outcomes == [.unanswered] && bench.transport.posts.count == 1)
    }

    @Test func anAccountThatIsRefusedOpensTheCircuit() throws {
        var bench = try Bench()
        try bench.add()
        bench.answer(403)
        #expect(bench.sender.statistics(at: bench.now).circuitsOpen == ["fcm": "status 403"])
        bench.pass(seconds: 60)
        #expect(bench.transport.posts.count == 2)
        bench.answer(200)
        #expect(bench.outcomes == [.delivered] && bench.sender.statistics(at: bench.now).circuitsOpen.isEmpty)
    }
}

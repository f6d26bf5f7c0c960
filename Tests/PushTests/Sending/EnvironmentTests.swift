import Hub
import Testing

@testable import Push

/// Apple's two services, each with tokens of its own, of which one at most is where a registration says.
struct EnvironmentTests {
    @Test func aTokenOfTheOtherEnvironmentIsFoundOnce() throws {
        var hosts = try TwoHosts(sandbox: [1], production: [2])
        let push = try Samples.push(1, environment: .production)
        hosts.send(push)
        #expect(hosts.posts == [.production, .sandbox])
        #expect(hosts.bench.outcomes.map(\.outcome) == [.delivered])
        #expect(hosts.bench.outcomes.map(\.push.foundEnvironment) == [.sandbox])
        // The target is as the database has it, where the alert was written down.
        #expect(hosts.bench.outcomes.map(\.push.target.environment) == [.production])
        #expect(Set(hosts.bench.transport.posts.map(\.request.push.id)) == [push.id])
        // What was read before the database knew better goes there at once.
        hosts.send(try Samples.push(1, environment: .production), try Samples.push(2, environment: .production))
        #expect(hosts.posts.dropFirst(2).sorted { $0.rawValue < $1.rawValue } == [.production, .sandbox])
        #expect(hosts.bench.outcomes.map(\.outcome) == [.delivered, .delivered, .delivered])
    }

    @Test func thoseThatWaitBehindItGoThereAtOnce() throws {
        var hosts = try TwoHosts(sandbox: [1])
        for _ in 0..<5 { hosts.bench.add(try Samples.push(1, environment: .production)) }
        hosts.run()
        #expect(hosts.posts == [.production] + Array(repeating: .sandbox, count: 5))
        #expect(hosts.bench.outcomes.count == 5 && hosts.bench.outcomes.allSatisfy { $0.outcome == .delivered })
    }

    @Test func aTokenThatIsBadAtBothIsBad() throws {
        var hosts = try TwoHosts()
        hosts.send(try Samples.push(1))
        #expect(hosts.posts == [.sandbox, .production])
        #expect(hosts.bench.outcomes.map(\.outcome) == [.badToken(reason: "BadDeviceToken")])
        #expect(hosts.bench.outcomes.map(\.push.foundEnvironment) == [nil])
    }

    @Test func aTokenThatIsGoneIsGoneWhereItWas() throws {
        var hosts = try TwoHosts()
        hosts.gone = [try Samples.token(1): .production]
        hosts.send(try Samples.push(1))
        #expect(hosts.posts == [.sandbox, .production])
        #expect(hosts.bench.outcomes.map(\.outcome) == [.unregistered(since: 5)])
        #expect(hosts.bench.outcomes.map(\.push.foundEnvironment) == [.production])
    }

    @Test func ofAnotherAppIsNoQuestionOfEnvironment() throws {
        var bench = try SenderBench()
        bench.add(try Samples.push(1))
        bench.connect()
        bench.answer(400, "DeviceTokenNotForTopic")
        #expect(bench.outcomes.map(\.outcome) == [.badToken(reason: "DeviceTokenNotForTopic")])
        #expect(bench.transport.posts.count == 1)
    }

    @Test func oneServerForBothIsAskedOnce() throws {
        var bench = try SenderBench { $0.url = "https://127.0.0.1:1" }
        bench.add(try Samples.push(1))
        bench.connect()
        bench.answer(400, "BadDeviceToken")
        #expect(bench.outcomes.map(\.outcome) == [.badToken(reason: "BadDeviceToken")])
        #expect(!bench.sender.rules.hasTwoHosts)
        var two = try Samples.configuration()
        two.url = "https://127.0.0.1:1"
        two.sandboxURL = "https://127.0.0.1:2/"
        #expect(two.hasTwoHosts && two.origin(of: ServerName(.sandbox)) == "https://127.0.0.1:2")
        #expect(two.origin(of: ServerName(.production)) == "https://127.0.0.1:1")
    }

    /// The key that Apple's site makes for one environment, and a configuration that says the other.
    @Test func aKeyForOneEnvironmentSendsEverythingThere() throws {
        var hosts = try TwoHosts(sandbox: [99], production: Set(0..<20))
        hosts.refusing = [.sandbox]
        for number in 0..<20 { hosts.bench.add(try Samples.push(number)) }
        hosts.run()
        #expect(hosts.posts.count { $0 == .sandbox } == 1)
        #expect(hosts.bench.outcomes.count == 20)
        #expect(hosts.bench.outcomes.allSatisfy { $0.outcome == .delivered && $0.push.foundEnvironment == .production })
        let said = hosts.bench.notices.filter { $0.level >= .warning }
        #expect(said.count == 1 && said.first?.text.contains("in production alone (BadEnvironmentKeyInToken)") == true)
        #expect(hosts.bench.sender.statistics(at: hosts.bench.now).keyEnvironment == .production)
        #expect(hosts.bench.sender.statistics(at: hosts.bench.now).circuitsOpen.isEmpty)
        // Whose phone the key cannot reach is asked about in the other environment alone.
        hosts.send(try Samples.push(99))
        #expect(hosts.posts.count { $0 == .sandbox } == 1)
        #expect(hosts.bench.outcomes.last?.outcome == .badToken(reason: "BadEnvironmentKeyInToken"))
        // After an hour the scope may be another.
        hosts.refusing = []
        hosts.bench.pass(seconds: 3601)
        hosts.send(try Samples.push(99, seconds: 86_400))
        #expect(hosts.bench.outcomes.last?.outcome == .delivered && hosts.posts.last == .sandbox)
        #expect(hosts.bench.sender.statistics(at: hosts.bench.now).keyEnvironment == nil)
    }

    @Test func aBadTokenOpensNoCircuitWhereTheKeyIsNotFor() throws {
        var hosts = try TwoHosts(production: [1])
        hosts.refusing = [.sandbox]
        for number in 2..<12 { hosts.bench.add(try Samples.push(number, environment: .production)) }
        hosts.send(try Samples.push(1, environment: .production))
        #expect(hosts.bench.outcomes.count { $0.outcome == .badToken(reason: "BadDeviceToken") } == 10)
        #expect(hosts.bench.outcomes.count { $0.outcome == .delivered } == 1)
        #expect(hosts.posts.count { $0 == .sandbox } <= 10)
        let before = hosts.posts.count
        hosts.send(try Samples.push(20, environment: .production))
        #expect(hosts.posts.count == before + 1)
        #expect(hosts.bench.sender.statistics(at: hosts.bench.now).circuitsOpen.isEmpty)
        #expect(hosts.bench.notices.count { $0.level >= .warning } == 1)
    }

    @Test func aKeyThatNeitherTakesWaits() throws {
        var hosts = try TwoHosts(sandbox: Set(0..<10))
        hosts.refusing = [.sandbox, .production]
        for number in 0..<10 { hosts.bench.add(try Samples.push(number)) }
        hosts.run()
        #expect(hosts.bench.outcomes.isEmpty && hosts.posts.count <= 3)
        #expect(hosts.bench.notices.count { $0.level == .error } == 1)
        hosts.refusing = []
        hosts.bench.pass(seconds: 61)
        hosts.run()
        hosts.bench.pass(seconds: 61)
        hosts.run()
        #expect(hosts.bench.outcomes.count == 10)
    }

    /// A firewall that knows one host: nobody's alerts wait behind a bad token.
    @Test func theOtherHostCannotBeReached() throws {
        var hosts = try TwoHosts(sandbox: [2])
        hosts.unreachable = [.production]
        hosts.send(try Samples.push(1), try Samples.push(2))
        #expect(hosts.bench.outcomes.map(\.outcome) == [.delivered])
        for _ in 0..<32 {
            hosts.bench.pass(seconds: 1)
            hosts.run()
        }
        #expect(hosts.bench.outcomes.last?.outcome == .refused(status: 400, reason: "BadDeviceToken"))
        #expect(hosts.bench.sender.queue.count == 0)
    }

    @Test func aStopGivesBackWhatNobodyTook() throws {
        var hosts = try TwoHosts(production: [1])
        hosts.unreachable = [.production]
        hosts.send(try Samples.push(1))
        hosts.bench.sender.stop()
        hosts.bench.turn()
        #expect(hosts.bench.outcomes.map(\.outcome) == [.stopped])
    }
}

/// The stand-ins of Apple's two hosts.
private struct TwoHosts {
    var bench: SenderBench
    private var tokens: [PushEnvironment: Set<PushToken>]
    var gone: [PushToken: PushEnvironment] = [:]
    /// Where the key is refused.
    var refusing: Set<PushEnvironment> = []
    var unreachable: Set<PushEnvironment> = []

    init(sandbox: Set<Int> = [], production: Set<Int> = []) throws {
        bench = try SenderBench()
        tokens = [
            .sandbox: Set(try sandbox.map { try Samples.token($0) }),
            .production: Set(try production.map { try Samples.token($0) }),
        ]
    }

    /// Where everything was sent, in order.
    var posts: [PushEnvironment] {
        bench.transport.posts.compactMap { post in
            bench.transport.opened.first { $0.connection == post.connection }?.server.environment
        }
    }

    mutating func send(_ pushes: Push...) {
        for push in pushes { bench.add(push) }
        run()
    }

    /// Answers until nothing is on its way.
    mutating func run() {
        for _ in 0..<100 {
            for (connection, server) in bench.sender.servers {
                if let environment = server.environment { connect(connection, to: environment) }
            }
            for (connection, requests) in bench.transport.onTheirWay {
                guard let environment = bench.sender.servers[connection]?.environment else { continue }
                for ticket in requests.keys.sorted() {
                    guard let request = bench.transport.land(ticket, connection) else { continue }
                    bench.transport.events.append(
                        (connection, .answered(ticket, answer(request.push, in: environment))))
                }
            }
            bench.turn()
        }
    }

    private mutating func connect(_ connection: UInt64, to environment: PushEnvironment) {
        guard bench.sender.pools[ServerName(environment)]?.links[connection]?.state == .connecting else { return }
        bench.transport.events.append(
            (connection, unreachable.contains(environment) ? .closed(why: "no route") : .opened))
    }

    private func answer(_ push: Push, in environment: PushEnvironment) -> Answer {
        guard !refusing.contains(environment) else { return Answer(status: 403, reason: "BadEnvironmentKeyInToken") }
        guard case .device(let destination) = push.target else { return Answer(status: 200) }
        if gone[destination.token] == environment {
            return Answer(status: 410, reason: "Unregistered", timestamp: 5)
        }
        guard tokens[environment]?.contains(destination.token) == true else {
            return Answer(status: 400, reason: "BadDeviceToken")
        }
        return Answer(status: 200)
    }
}

import Glibc
import RedisFixtures
import Testing

@testable import Redis

/// Every end of a connection is noticed, is told with its reason, and is healed once the server is back.
@Suite struct RedisCutTests {
    @Test func aPortThatNobodyListensOn() throws {
        let driver = LinkDriver(RedisAddress(.tcp(.init(host: "127.0.0.1", port: TestPort.claim()))))
        let failure = try driver.falls(.refused)
        #expect(failure.description == "the connection was not accepted: Connection refused")
    }

    @Test func aSocketThatIsNotThere() throws {
        let driver = LinkDriver(RedisAddress(.unix("/nowhere/socket")))
        try driver.falls(.refused)
        let long = LinkDriver(RedisAddress(.unix("/" + String(repeating: "x", count: 200))))
        #expect(try long.falls().description == "the path of the Unix socket is too long")
    }

    @Test func aPortThatDropsWhoeverComes() throws {
        let (port, descriptors) = try TestListener.full()
        defer { descriptors.forEach { close($0) } }
        var timeouts = RedisTimeouts()
        timeouts.connect = .milliseconds(300)
        let driver = LinkDriver(RedisAddress(.tcp(.init(host: "127.0.0.1", port: port))), timeouts: timeouts)
        let begun = ContinuousClock.now
        #expect(try driver.falls(.unanswered).description == "there is no answer in time")
        #expect(ContinuousClock.now - begun >= .milliseconds(300))
    }

    /// What the kernel calls POLLERR: with nothing in flight, and with commands in flight.
    @Test(arguments: [false, true]) func aReset(isInFlight: Bool) throws {
        let server = try RedisFixture()
        let proxy = try TestProxy(to: server.port)
        defer { proxy.stop() }
        let driver = LinkDriver(RedisAddress(.tcp(.init(host: "127.0.0.1", port: proxy.port))))
        try driver.becomesWhole()
        if isInFlight {
            proxy.holdBack(true)
            for tag: UInt64 in 1...3 { #expect(driver.link.queueCommand(["INCR", "n"], tag: tag, at: .now)) }
            var none: [pollfd] = []
            driver.link.preparePoll(into: &none)
            try eventuallyOnRedis("they are done") { try server.session().runCommand("GET", "n").text == "3" }
        }
        proxy.reset()
        #expect(try driver.falls(.cut).description == "the connection was cut: Connection reset by peer")
        if isInFlight {
            for tag: UInt64 in 1...3 { try driver.expect("lost \(tag)") { $0 == .lost(tag: tag) ? () : nil } }
        }
        proxy.holdBack(false)
        try driver.becomesWhole()
        #expect(try driver.reply(to: "PING") == .status("PONG"))
    }

    @Test func aServerThatIsKilledWithUnreadInput() throws {
        let server = try RedisFixture()
        let driver = LinkDriver(server.address)
        try driver.becomesWhole()
        try server.freeze()
        #expect(driver.link.queueCommand(["SET", "k", .bytes([UInt8](repeating: 1, count: 1000))], tag: 5, at: .now))
        var none: [pollfd] = []
        driver.link.preparePoll(into: &none)
        server.killFrozen()
        try driver.falls(.cut)
        try driver.expect("lost") { $0 == .lost(tag: 5) ? () : nil }
        try driver.falls(.refused)
        try server.start()
        try driver.becomesWhole()
    }

    /// Of the two connections either may fall: the link is away until both are there again, and the other one is asked first.
    @Test(arguments: ["normal", "pubsub"]) func oneOfTheTwoIsKilled(kind: String) throws {
        let server = try RedisFixture()
        let driver = LinkDriver(server.address)
        try driver.becomesWhole()
        // The session that kills is a normal one, too, which is spared.
        _ = try server.session().runCommand("CLIENT", "KILL", "TYPE", .text(kind))
        try driver.falls(.cut)
        #expect(!driver.link.queueCommand(["PING"], tag: 1, at: .now))
        try driver.becomesWhole()
        #expect(driver.link.queueCommand(["PUBLISH", "{roost:test}:c", "x"], tag: 1, at: .now))
        try driver.expect("the message") { $0 == .message(channel: "{roost:test}:c", [120]) ? () : nil }
    }

    /// The commands' connection lives on, and what it was asked before the other one fell is answered afterwards: to nobody.
    @Test func aReplyToACommandOfBeforeIsNotTold() throws {
        let server = try RedisFixture()
        let driver = LinkDriver(server.address)
        try driver.becomesWhole()
        let session = try server.session()
        #expect(driver.link.queueCommand(["BLPOP", "list", 0], tag: 1, at: .now))
        try eventuallyOnRedis("it waits") {
            driver.turn(until: .now)
            return try session.runCommand("INFO", "clients").text?.contains("blocked_clients:1\r\n") == true
        }
        _ = try session.runCommand("CLIENT", "KILL", "TYPE", "pubsub")
        try driver.falls(.cut)
        try driver.expect("lost") { $0 == .lost(tag: 1) ? () : nil }
        #expect(try session.runCommand("RPUSH", "list", "x") == .integer(1))
        try driver.becomesWhole()
        #expect(try driver.reply(to: "LLEN", "list", tag: 3) == .integer(0))
        #expect(!driver.events.contains { if case .reply(1, _) = $0 { true } else { false } })
        #expect(driver.events.filter { $0 == .lost(tag: 1) }.count == 1)
    }

    @Test func theCommandsConnectionFallsAlone() throws {
        let server = try RedisFixture()
        let driver = LinkDriver(server.address)
        try driver.becomesWhole()
        let session = try server.session()
        for tag: UInt64 in 1...2 { #expect(driver.link.queueCommand(["BLPOP", "list", 0], tag: tag, at: .now)) }
        try eventuallyOnRedis("they wait") {
            driver.turn(until: .now)
            return try session.runCommand("INFO", "clients").text?.contains("blocked_clients:1\r\n") == true
        }
        _ = try session.runCommand("CLIENT", "KILL", "TYPE", "normal")
        try driver.falls(.cut)
        for tag: UInt64 in 1...2 { try driver.expect("lost \(tag)") { $0 == .lost(tag: tag) ? () : nil } }
        try driver.becomesWhole()
        #expect(try driver.reply(to: "PING", tag: 3) == .status("PONG"))
    }

    @Test func aFrozenServer() throws {
        let server = try RedisFixture()
        var timeouts = RedisTimeouts.patient
        timeouts.ping = .milliseconds(20)
        timeouts.silence = .seconds(3)
        let driver = LinkDriver(server.address, timeouts: timeouts)
        try driver.becomesWhole()
        // Alive, it is asked for a sign of life now and then, and shows it.
        let session = try server.session()
        try eventuallyOnRedis("pings") {
            driver.turn(until: .now)
            let statistics = try session.runCommand("INFO", "commandstats").text ?? ""
            guard let range = statistics.firstRange(of: "cmdstat_ping:calls=") else { return false }
            return Int(statistics[range.upperBound...].prefix { $0.isNumber }) ?? 0 > 10
        }
        #expect(driver.link.isWhole)
        try server.freeze()
        #expect(try driver.falls(.silent).description == "Redis does not answer any more")
        server.thaw()
        try driver.becomesWhole()
    }

    /// The hub's own process may be stopped or starved: what it finds then is not held against the server.
    @Test func aPauseOfOurOwnIsNoSilenceOfTheServers() throws {
        let server = try RedisFixture()
        let driver = LinkDriver(server.address, timeouts: RedisTimeouts())
        try driver.becomesWhole()
        // With nothing in flight: after ten seconds that nobody watched, the server is asked before it is judged.
        var now = ContinuousClock.now + .seconds(10)
        #expect(driver.link.makeProgress(at: now) == [])
        // With pings in flight whose replies have come meanwhile: they are read first.
        func repliesCome() {
            var polled: [pollfd] = []
            driver.link.preparePoll(into: &polled)
            #expect(polled.count == 2)
            for var one in polled { #expect(poll(&one, 1, 20_000) == 1) }
        }
        for _ in 0..<3 {
            repliesCome()
            now += .seconds(10)
            #expect(driver.link.makeProgress(at: now) == [])
            now += .milliseconds(600)
            #expect(driver.link.makeProgress(at: now) == [])
        }
        repliesCome()
        #expect(driver.link.makeProgress(at: now) == [])
        #expect(driver.link.isWhole)
        // What was asked and is not answered in time is silence.
        try server.freeze()
        now += .seconds(10)
        for (after, events): (Int64, Int) in [(0, 0), (900, 0), (1100, 1)] {
            let told = driver.link.makeProgress(at: now + .milliseconds(after))
            let silent = LinkEvent.away(RedisFailure(.silent, "Redis does not answer any more"))
            #expect(told == [LinkEvent](repeating: silent, count: events))
        }
    }

    /// The server cuts off who does not read: 200 KB of messages are too many.
    @Test func aReaderThatIsTooSlow() throws {
        let server = try RedisFixture(["client-output-buffer-limit pubsub 200kb 200kb 1"])
        let driver = LinkDriver(server.address)
        try driver.becomesWhole()
        let session = try server.session()
        let message = [UInt8](repeating: 1, count: 100_000)
        // The kernel takes some megabytes before the server has to keep anything.
        try eventuallyOnRedis("the server drops the reader") {
            try session.runCommand("PUBLISH", "{roost:test}:c", .bytes(message)) == .integer(0)
        }
        try driver.falls(.cut)
        try driver.becomesWhole()
        #expect(try driver.reply(to: "PUBLISH", "{roost:test}:c", "x") == .integer(1))
    }

    @Test func attemptsComeQuicklyAndNotAtOnce() throws {
        var timeouts = RedisTimeouts()
        timeouts.firstRetry = .milliseconds(50)
        var pause = RetryPause(timeouts)
        let now = ContinuousClock.now
        let waits = (0..<5).map { _ in pause.attemptFailed(at: now, random: 1) - now }
        #expect(waits == [50, 100, 200, 250, 250].map { .milliseconds($0) })
        pause.connectionOpened(at: now)
        #expect(pause.attemptFailed(at: now + .milliseconds(10), random: 0) - now == .milliseconds(135))
        pause.connectionOpened(at: now)
        #expect(pause.attemptFailed(at: now + .seconds(1), random: 0) - now == .milliseconds(1025))
    }

    @Test func twoServersBehindOneAddress() throws {
        let one = try RedisFixture()
        let other = try RedisFixture()
        let proxy = try TestProxy(to: one.port)
        defer { proxy.stop() }
        let driver = LinkDriver(RedisAddress(.tcp(.init(host: "127.0.0.1", port: proxy.port))))
        try driver.becomesWhole()
        proxy.lead(to: other.port)
        _ = try one.session().runCommand("CLIENT", "KILL", "TYPE", "pubsub")
        #expect(try driver.falls(.elsewhere).description == "the address led to two different servers")
        try driver.becomesWhole()
        #expect(try driver.reply(to: "CONFIG", "GET", "port").elements?.last?.text == "\(other.port)")
    }
}

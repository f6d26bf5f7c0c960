import Glibc
import RedisFixtures
import Testing

@testable import Redis

@Suite struct RedisLinkTests {
    @Test func commandsAreAnsweredInOrder() throws {
        let server = try RedisFixture()
        let driver = LinkDriver(server.address)
        #expect(!driver.link.queueCommand(["PING"], tag: 1, at: .now), "before it is whole")
        try driver.becomesWhole()
        #expect(driver.link.server.version?.isEmpty == false)
        for tag in 0..<1000 {
            #expect(driver.link.queueCommand(["ECHO", .text("\(tag)")], tag: UInt64(tag), at: .now))
        }
        for tag in 0..<1000 { #expect(try driver.reply(UInt64(tag)).text == "\(tag)") }
    }

    @Test func overAUnixSocket() throws {
        let server = try RedisFixture()
        let driver = LinkDriver(server.socket)
        try driver.becomesWhole()
        #expect(try driver.reply(to: "SET", "k", .bytes([0, 13, 10, 255])) == .status("OK"))
        #expect(try driver.reply(to: "GET", "k") == .bytes([0, 13, 10, 255]))
    }

    @Test func byAHostsName() throws {
        let server = try RedisFixture()
        let driver = LinkDriver(RedisAddress(.tcp(.init(host: "localhost", port: server.port))))
        try driver.becomesWhole()
    }

    @Test func aNameThatIsNone() throws {
        // Too long for a name, so that nobody is asked for it.
        let name = String(repeating: "x", count: 70) + ".invalid"
        let driver = LinkDriver(RedisAddress(.tcp(.init(host: name, port: 6379))))
        #expect(try driver.falls().description.hasPrefix("the host's name has no address"))
    }

    @Test func messagesComeBeforeThePongThatFollowsThem() throws {
        let server = try RedisFixture()
        let driver = LinkDriver(server.address, channels: ["one", "two"])
        try driver.becomesWhole()
        for number in 0..<500 {
            let payload = [UInt8](repeating: UInt8(number % 256), count: number * 7)
            #expect(
                driver.link.queueCommand(
                    ["PUBLISH", number % 2 == 0 ? "one" : "two", .bytes(payload)], tag: 9, at: .now))
        }
        try driver.expect("the last reply") { _ in
            driver.events.filter { if case .reply = $0 { true } else { false } }.count == 500 ? () : nil
        }
        #expect(driver.link.publishPing(tag: 77, at: .now))
        var messages = 0
        try driver.expect("the pong") { $0 == .pong(tag: 77) ? () : nil }
        for event in driver.events.prefix(while: { $0 != .pong(tag: 77) }) {
            guard case .message(let channel, let bytes) = event else { continue }
            #expect(channel == (messages % 2 == 0 ? "one" : "two"))
            #expect(bytes == [UInt8](repeating: UInt8(messages % 256), count: messages * 7))
            messages += 1
        }
        #expect(messages == 500)
    }

    @Test func aReplyThatLooksLikeAMessageIsAReply() throws {
        let server = try RedisFixture()
        let driver = LinkDriver(server.address)
        try driver.becomesWhole()
        #expect(try driver.reply(to: "RPUSH", "l", "message", "{roost:test}:c", "x") == .integer(3))
        let reply = try driver.reply(to: "LRANGE", "l", "0", "-1")
        #expect(reply.elements?.map(\.text) == ["message", "{roost:test}:c", "x"])
    }

    @Test func aScriptThatRedisForgotIsSentAgain() throws {
        let server = try RedisFixture()
        let script = RedisScript("return {KEYS[1], ARGV[1]}")
        let driver = LinkDriver(server.address, scripts: [script])
        try driver.becomesWhole()
        for round: UInt64 in 1...2 {
            #expect(try driver.reply(to: "SCRIPT", "FLUSH") == .status("OK"))
            for tag in [round * 10, round * 10 + 1] {
                #expect(driver.link.queueCall(script, keys: ["k"], arguments: [.integer(7)], tag: tag, at: .now))
                #expect(try driver.reply(tag).elements?.map(\.text) == ["k", "7"])
            }
        }
        let loaded = try server.session().runCommand("INFO", "memory").text ?? ""
        #expect(loaded.contains("number_of_cached_scripts:1\r\n"))
    }

    @Test func whatIsUnansweredIsBounded() throws {
        let server = try RedisFixture(["client-query-buffer-limit 64mb"])
        let driver = LinkDriver(server.address)
        try driver.becomesWhole()
        try server.freeze()
        let megabyte = [UInt8](repeating: 1, count: 1 << 20)
        var accepted = 0
        while driver.link.queueCommand(["SET", "k", .bytes(megabyte)], tag: UInt64(accepted), at: .now) {
            accepted += 1
            var none: [pollfd] = []
            driver.link.preparePoll(into: &none)
            try #require(accepted < 100)
        }
        #expect(accepted == 7)
        server.thaw()
        for tag in 0..<accepted { #expect(try driver.reply(UInt64(tag)) == .status("OK")) }
        #expect(driver.link.queueCommand(["SET", "k", .bytes(megabyte)], tag: 1, at: .now))
    }

    @Test func bigRepliesComeWhole() throws {
        let server = try RedisFixture()
        let driver = LinkDriver(server.address)
        try driver.becomesWhole()
        let bytes = (0..<(5 << 20)).map { UInt8(truncatingIfNeeded: $0 &* 2_654_435_761 >> 8) }
        #expect(try driver.reply(to: "SET", "k", .bytes(bytes)) == .status("OK"))
        #expect(try driver.reply(to: "GET", "k") == .bytes(bytes))
    }
}

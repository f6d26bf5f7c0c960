import RedisFixtures
import Testing

@testable import Redis

@Suite struct RedisSentinelTests {
    /// One Sentinel that watches the server by the name `main`.
    private func sentinel(of primary: RedisFixture) throws -> RedisFixture {
        try RedisFixture(
            [
                "sentinel monitor main 127.0.0.1 \(primary.port) 1", "sentinel down-after-milliseconds main 1000",
                "sentinel failover-timeout main 10000",
            ], arguments: ["--sentinel"])
    }

    private func address(_ sentinels: [UInt16], name: String = "main") -> RedisAddress {
        RedisAddress(.sentinel(sentinels.map { .init(host: "127.0.0.1", port: $0) }, name: name))
    }

    @Test func theFirstThatAnswersNamesThePrimary() throws {
        let primary = try RedisFixture()
        let watching = try sentinel(of: primary)
        let driver = LinkDriver(address([TestPort.claim(), TestPort.claim(), watching.port]))
        try driver.becomesWhole()
        #expect(try driver.reply(to: "CONFIG", "GET", "port").elements?.last?.text == "\(primary.port)")
    }

    @Test func nobodyNamesIt() throws {
        let primary = try RedisFixture()
        let watching = try sentinel(of: primary)
        #expect(
            try LinkDriver(address([watching.port], name: "other")).falls()
                == RedisFailure(
                    .sentinel, "no Sentinel names the primary; of the last one: it knows no primary of the name other"))
        let failure = try LinkDriver(address([TestPort.claim()])).falls()
        #expect(failure.description.hasSuffix("the connection was not accepted: Connection refused"))
    }

    /// The server that it names has become a replica, and Sentinel does not know it yet.
    @Test func whatItNamesIsNoPrimary() throws {
        let primary = try RedisFixture()
        let replica = try RedisFixture()
        try replica.follow(primary)
        // A stand-in, as a real one turns such a server back within seconds.
        let answer = "*2\r\n$9\r\n127.0.0.1\r\n$5\r\n\(replica.port)\r\n"
        let watching = try TestListener(saying: Array("+OK\r\n\(answer)".utf8))
        let driver = LinkDriver(address([watching.port]))
        #expect(try driver.falls() == RedisFailure(.sentinel, "Sentinel names a server that is no primary"))
        try replica.promote()
        try driver.becomesWhole()
    }

    @Test func aFailover() throws {
        let primary = try RedisFixture()
        let replica = try RedisFixture()
        try replica.follow(primary)
        let watching = try sentinel(of: primary)
        let driver = LinkDriver(address([watching.port]))
        try driver.becomesWhole()
        let log = LogDriver(driver)
        let opened = try log.open(leastEpoch: 1000)
        _ = try log.publish([1], opened)
        let session = try watching.session()
        try eventuallyOnRedis("Sentinel knows the replica") {
            try session.runCommand("SENTINEL", "REPLICAS", "main").elements?.count == 1
        }
        try eventuallyOnRedis("the replica has the entry") {
            try replica.session().runCommand("XLEN", .text(log.keys.log)) == .integer(1)
        }
        primary.kill()
        try driver.falls(.cut)
        try driver.expect("whole with the other one", within: .seconds(60)) { $0 == .whole ? () : nil }
        #expect(try driver.reply(to: "CONFIG", "GET", "port").elements?.last?.text == "\(replica.port)")
        #expect(try log.open().older == [LogEntryID(epoch: 1000, offset: 0)])
    }

    /// The old primary stays up.
    @Test func thePrimaryIsReplacedAndStays() throws {
        let primary = try RedisFixture()
        let replica = try RedisFixture()
        try replica.follow(primary)
        let watching = try sentinel(of: primary)
        let driver = LinkDriver(address([watching.port]))
        try driver.becomesWhole()
        let session = try watching.session()
        try eventuallyOnRedis("Sentinel knows the replica, and the link listens") {
            driver.turn(until: .now)
            return try session.runCommand("SENTINEL", "REPLICAS", "main").elements?.count == 1
                && session.runCommand("CLIENT", "LIST").text?.contains(" sub=1 ") == true
        }
        try eventuallyOnRedis("it takes the replica for a good one") {
            driver.turn(until: .now)
            return try session.runCommand("SENTINEL", "FAILOVER", "main") == .status("OK")
        }
        _ = try driver.expect("away", within: .seconds(60)) { if case .away = $0 { true } else { nil } }
        try driver.becomesWhole()
        #expect(try driver.reply(to: "CONFIG", "GET", "port").elements?.last?.text == "\(replica.port)")
    }

    @Test func whatItSaysWhileTheLinkIsWhole() throws {
        let primary = try RedisFixture()
        let other = try RedisFixture()
        let answer = "*2\r\n$9\r\n127.0.0.1\r\n$5\r\n\(primary.port)\r\n"
        let listening = "*3\r\n$9\r\nsubscribe\r\n$14\r\n+switch-master\r\n:1\r\n"
        func switched(_ name: String) -> String {
            let text = "\(name) 127.0.0.1 \(primary.port) 127.0.0.1 \(other.port)"
            return "*3\r\n$7\r\nmessage\r\n$14\r\n+switch-master\r\n$\(text.utf8.count)\r\n\(text)\r\n"
        }
        let stand = try TestListener(saying: Array("+OK\r\n\(answer)\(listening)".utf8))
        let driver = LinkDriver(address([stand.port]))
        try driver.becomesWhole()
        // Two that ask, and one that listens.
        try eventuallyOnRedis("all are there") {
            driver.turn(until: .now)
            return stand.accepted == 3
        }
        stand.say(Array((switched("other") + switched("main")).utf8))
        #expect(try driver.falls().description == "Sentinel names another primary: 127.0.0.1:\(other.port)")
        try driver.becomesWhole()
    }
}

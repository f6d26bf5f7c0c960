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
        #expect(failure.description.hasSuffix("nobody takes the connection: Connection refused"))
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
            try session.ask("SENTINEL", "REPLICAS", "main").elements?.count == 1
        }
        try eventuallyOnRedis("the replica has the entry") {
            try replica.session().ask("XLEN", .text(log.keys.log)) == .integer(1)
        }
        primary.kill()
        try driver.falls(.cut)
        try driver.expect("whole with the other one", within: .seconds(60)) { $0 == .whole ? () : nil }
        #expect(try driver.reply(to: "CONFIG", "GET", "port").elements?.last?.text == "\(replica.port)")
        #expect(try log.open().older == [LogEntryID(epoch: 1000, offset: 0)])
    }
}

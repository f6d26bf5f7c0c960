import Administration
import Foundation
import Redis
import RedisFixtures
import Testing

/// What the doctor says of the Redis by which several hubs act as one.
@Suite(.serialized) struct RedisDoctorTests {
    private func examine(
        _ address: RedisAddress, _ limits: RedisDoctorLimits = RedisDoctorLimits(), node: String = "hub1"
    ) -> [Finding] {
        RedisDoctor(
            address, cluster: "roost", node: node, logEntries: 60_000, logBytes: 64 << 20, limits: limits
        ).examineServer()
    }

    /// The sentence about a subject, with how bad it is.
    private func said(_ findings: [Finding], _ subject: String) -> String {
        findings.filter { $0.subject == subject }.map { "\($0.severity): \($0.message)" }.joined(separator: "\n")
    }

    /// Patient, as these tests share a busy machine.
    private var patient: RedisDoctorLimits {
        var limits = RedisDoctorLimits()
        limits.latency = .seconds(10)
        return limits
    }

    @Test func aServerAsThePageWantsItIsGood() throws {
        let redis = try RedisFixture(["user roost on >secret \(RedisRights.acl)"])
        var address = redis.address
        address.credentials = .init(user: "roost", password: "secret")
        let findings = examine(address, patient)
        #expect(findings.filter { $0.severity != .good } == [])
        #expect(said(findings, "redis rights").contains("roost may do"))
        #expect(said(findings, "redis readers").contains("not shown to this user"))
        #expect(try redis.session().runCommand("KEYS", "*") == .array([]), "it writes nothing")
        #expect(!"\(findings)".contains("secret"))
        // The default user may ask for more.
        let asDefault = examine(redis.socket, patient)
        #expect(asDefault.filter { $0.severity != .good } == [])
        #expect(said(asDefault, "redis readers").contains("32 MB wait"))
        #expect(said(asDefault, "redis encryption").contains("Unix socket"))
    }

    @Test func whyItIsNotReachedIsSaid() throws {
        let nobody = RedisAddress(.tcp(.init(host: "127.0.0.1", port: TestPort.claim())))
        #expect(said(examine(nobody), "redis").hasPrefix("error: Redis cannot be used at redis://127.0.0.1"))
        let redis = try RedisFixture(["requirepass secret"])
        #expect(said(examine(redis.address), "redis").contains("wants a password"))
        var address = redis.address
        address.credentials.password = "other"
        #expect(said(examine(address), "redis").contains("refuses the user or the password"))
    }

    @Test(arguments: [
        ("+publish", "-publish", "publish"), ("+xadd", "-xadd", "xadd"), ("+evalsha", "-evalsha", "evalsha"),
        ("+subscribe", "-subscribe", "subscribe"), ("+pubsub|numsub", "-pubsub", "pubsub|numsub"),
        ("~{roost:*}:*", "~{other:*}:*", "keys {roost:roost}:*"),
        ("&{roost:*}:*", "&{other:*}:*", "channels {roost:roost}:*"),
    ])
    func whatTheUserLacksIsNamed(_ right: String, _ without: String, _ named: String) throws {
        let acl = RedisRights.acl.replacingOccurrences(of: right, with: without)
        let redis = try RedisFixture(["user roost on >secret \(acl)"])
        var address = redis.address
        address.credentials = .init(user: "roost", password: "secret")
        let finding = said(examine(address), "redis rights")
        #expect(finding.contains("error: The user roost lacks \(named); run ACL SETUSER roost "), "\(finding)")
    }

    @Test func serversThatAreNotServedAreRefused() throws {
        let primary = try RedisFixture()
        let replica = try RedisFixture()
        try replica.follow(primary)
        #expect(
            said(examine(replica.address), "redis").hasPrefix(
                "error: This is a replica, which takes no writes; name its primary (127.0.0.1:\(primary.port))"))
        let part = try RedisFixture(["cluster-enabled yes"])
        #expect(said(examine(part.address), "redis").hasPrefix("error: This server is part of a Redis Cluster"))
        let sentinel = try RedisFixture(
            ["sentinel monitor main 127.0.0.1 \(primary.port) 1"], arguments: ["--sentinel"])
        #expect(said(examine(sentinel.address), "redis").hasPrefix("error: This is a Sentinel"))
        let named = examine(RedisAddress(.sentinel([.init(host: "127.0.0.1", port: sentinel.port)], name: "main")))
        #expect(said(named, "redis").contains("can be reached (redis://127.0.0.1:\(primary.port))"))
        #expect(said(named, "redis failover").contains("warning: min-replicas-to-write is 0"))
        #expect(said(named, "redis failover").contains("names 1 Sentinel;"))
    }

    @Test func memoryThatMayRunOutIsSaid() throws {
        let redis = try RedisFixture(["maxmemory 64mb", "maxmemory-policy allkeys-lru"])
        #expect(said(examine(redis.address), "redis memory").contains("warning: maxmemory-policy is allkeys-lru"))
        _ = try redis.session().runCommand("CONFIG", "SET", "maxmemory-policy", "noeviction")
        #expect(said(examine(redis.address), "redis memory").hasPrefix("good: The log is empty"))
        let keys = LogKeys(cluster: "roost")
        // Two epochs of three entries and two.
        for (id, size) in [("7-1", 10), ("7-2", 10), ("7-3", 10), ("9-0", 5000), ("9-1", 5000)] {
            _ = try redis.session().runCommand(
                "XADD", .text(keys.log), .text(id), "p", "1", "t", "2", "b", .text(String(repeating: "x", count: size)))
        }
        _ = try redis.session().runCommand("SET", .text(keys.head), "9 1 abc 2 7-3")
        let finding = said(examine(redis.address), "redis memory")
        #expect(finding.contains("warning: The log has about 5 entries") && finding.contains("grows to "), "\(finding)")
        _ = try redis.session().runCommand("CONFIG", "SET", "maxmemory", "1")
        #expect(said(examine(redis.address), "redis").contains("Redis refuses xadd: OOM"))
    }

    @Test func readersThatWouldBeCutOffAreSaid() throws {
        let redis = try RedisFixture(["client-output-buffer-limit pubsub 1mb 1mb 10"])
        #expect(said(examine(redis.address), "redis readers").contains("warning"))
    }

    @Test func whatItKeepsIsSaid() throws {
        let redis = try RedisFixture(["appendonly yes"])
        #expect(said(examine(redis.address), "redis persistence").hasPrefix("good: Redis keeps the log"))
    }

    @Test func encryptionIsJudged() throws {
        let certificates = try TestCertificates()
        let redis = try RedisFixture(certificates: certificates)
        let port = try #require(redis.tlsPort)
        var address = RedisAddress(.tcp(.init(host: "127.0.0.1", port: port)))
        address.encryption = .init(authorities: certificates.authority)
        #expect(said(examine(address), "redis encryption").hasPrefix("good: TLS"))
        address.encryption = .init(verifies: false)
        #expect(said(examine(address), "redis encryption").hasPrefix("warning: TLS, but any certificate"))
        address.encryption = .init()
        #expect(said(examine(address), "redis").hasPrefix("error: Redis cannot be used at rediss://"))
    }

    @Test func twoHubsOfOneNameAreFound() throws {
        let redis = try RedisFixture()
        let keys = LogKeys(cluster: "roost")
        var links = ["hub1", "hub2", "hub3"].map { link(redis, keys, $0) }
        try untilWhole(links)
        #expect(
            said(examine(redis.address), "redis hubs")
                == "good: One hub is called hub1, and 2 other hubs are connected.")
        #expect(said(examine(redis.address, node: "hub9"), "redis hubs").contains("No hub is called hub9 at present"))
        links.append(link(redis, keys, "hub1"))
        try untilWhole(links)
        #expect(said(examine(redis.address), "redis hubs").hasPrefix("error: 2 hubs of this cluster are called hub1"))
    }

    private func link(_ redis: RedisFixture, _ keys: LogKeys, _ name: String) -> RedisLink {
        RedisLink(
            redis.address, name: "roost-\(name)", channels: [keys.channel, keys.channel(of: name)], scripts: [],
            at: .now)
    }

    private func untilWhole(_ links: [RedisLink]) throws {
        try eventuallyOnRedis("the hubs are connected") {
            for link in links {
                _ = link.makeProgress(at: .now)
                var polled: [pollfd] = []
                link.preparePoll(into: &polled)
            }
            return links.allSatisfy(\.isWhole)
        }
    }
}

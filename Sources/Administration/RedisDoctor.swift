import Foundation
package import Redis

/// Examines the Redis that connects several hubs, as a hub would use it.
///
/// Uses only commands that the hubs' user may run (`RedisRights.acl`), writes nothing, and never throws: failures
/// become findings.
package struct RedisDoctor {
    typealias Check = (RedisSession, RedisInformation) throws(RedisFailure) -> [Finding]

    let address: RedisAddress
    let keys: LogKeys
    let node: String
    /// The approximate limits of the log.
    let logEntries, logBytes: Int
    let limits: RedisDoctorLimits
    static let subject = "redis"

    /// - Parameters:
    ///   - cluster: `cluster.name`.
    ///   - node: `node.name`.
    ///   - logEntries: the most entries that the log keeps.
    ///   - logBytes: `cluster.log_bytes`.
    package init(
        _ address: RedisAddress, cluster: String, node: String, logEntries: Int, logBytes: Int,
        limits: RedisDoctorLimits = RedisDoctorLimits()
    ) {
        self.address = address
        keys = LogKeys(cluster: cluster)
        self.node = node
        (self.logEntries, self.logBytes) = (logEntries, logBytes)
        self.limits = limits
    }

    package func examineServer() -> [Finding] {
        let (session, information): (RedisSession, RedisInformation)
        do {
            session = try RedisSession(address, name: "roost-doctor", limit: .seconds(3))
            information = RedisInformation(try session.runCommand("INFO").text ?? "")
        } catch {
            return [
                Finding(
                    .error, Self.subject,
                    "Redis cannot be used at \(address): \(error). Meanwhile the hub works alone.")
            ]
        }
        let unserved = checkKind(information)
        let place = session.place.map { RedisAddress($0).description } ?? address.description
        guard unserved.isEmpty else { return unserved }
        var findings = [Finding(.good, Self.subject, "\(information.name) can be reached (\(place)).")]
        let checks: [(String, Check)] = [
            ("redis rights", { (_, _) throws(RedisFailure) in try checkRights() }),
            ("redis encryption", checkEncryption),
            ("redis memory", checkMemory), ("redis persistence", checkPersistence), ("redis failover", checkFailover),
            ("redis readers", checkReaders), ("redis clock", checkClock), ("redis latency", checkLatency),
            ("redis hubs", checkHubs),
        ]
        for (subject, check) in checks {
            do {
                findings += try check(session, information)
            } catch {
                findings.append(Finding(.error, subject, "The check failed: \(error)."))
            }
        }
        return findings
    }

    /// Findings that rule the server out altogether.
    private func checkKind(_ information: RedisInformation) -> [Finding] {
        func refused(_ sentence: String) -> [Finding] { [Finding(.error, Self.subject, sentence)] }
        if information["redis_mode"] == "sentinel" {
            return refused("This is a Sentinel, not a Redis; write redis+sentinel://HOST:26379/NAME in cluster.url.")
        }
        if information["cluster_enabled"] == "1" {
            return refused(
                "This server is part of a Redis Cluster, which is not supported; give the hubs a server of their own.")
        }
        if information["role"] == "slave" {
            let primary = information["master_host"].map { " (\($0):\(information["master_port"] ?? ""))" } ?? ""
            return refused(
                "This is a replica, which takes no writes; name its primary\(primary) in cluster.url, or let Sentinel name it."
            )
        }
        guard information.isNewEnough else {
            return refused("\(information.name) is too old; the hubs need Redis 6.2 or newer, or Valkey.")
        }
        return []
    }
}

/// The limits beyond which the doctor reports something about Redis.
package struct RedisDoctorLimits: Sendable {
    /// The limit for the median round trip.
    package var latency = Duration.milliseconds(2)
    package var clock = Duration.seconds(1)
    /// The smallest output buffers at which Redis may cut off a hub that does not read: at once, and when they last.
    package var readerBytes = (hard: 16 << 20, soft: 4 << 20)

    package init() {}
}

/// A server's facts about itself: the lines of INFO.
struct RedisInformation {
    private let values: [Substring: Substring]

    init(_ text: String) {
        let pairs = text.split(whereSeparator: \.isNewline).map { $0.split(separator: ":", maxSplits: 1) }
        values = Dictionary(pairs.filter { $0.count == 2 }.map { ($0[0], $0[1]) }, uniquingKeysWith: { $1 })
    }

    subscript(name: String) -> String? { values[name[...]].map { String($0) } }

    func integer(_ name: String) -> Int64? { self[name].flatMap { Int64($0) } }

    private var isValkey: Bool { self["valkey_version"] != nil }

    var name: String {
        isValkey ? "Valkey \(self["valkey_version"] ?? "")" : "Redis \(self["redis_version"] ?? "of no known version")"
    }

    /// Valkey started as a fork of Redis 7.2.
    var isNewEnough: Bool {
        let parts = (self["redis_version"] ?? "").split(separator: ".").map { Int($0) ?? 0 }
        return isValkey || (parts.first ?? 0, parts.dropFirst().first ?? 0) >= (6, 2)
    }
}

import Foundation
import Redis

/// Checks of the server itself.
extension RedisDoctor {
    /// Checks the size of the log, and whether there is room for a full one.
    func checkMemory(_ session: RedisSession, _ information: RedisInformation) throws(RedisFailure) -> [Finding] {
        let log = try RedisLogSize(session, keys)
        let used = information.integer("used_memory") ?? 0
        let extent =
            log.entries == 0
            ? "The log is empty" : "The log has about \(log.entries) entries, \(Magnitude.bytes(log.bytes))"
        let most = information.integer("maxmemory") ?? 0
        guard most > 0 else {
            return [
                Finding(
                    .good, "redis memory",
                    "\(extent), and Redis uses \(Magnitude.bytes(used)); maxmemory is not set.")
            ]
        }
        var findings: [Finding] = []
        let policy = information["maxmemory_policy"] ?? ""
        if policy != "noeviction" {
            findings.append(
                Finding(
                    .warning, "redis memory",
                    "maxmemory-policy is \(policy), which may evict the log: then clients are told of missing "
                        + "messages; set noeviction, and do not share Redis with a cache."
                ))
        }
        let room = most - used
        let whole = min(log.bytes(of: logEntries), Int64(logBytes))
        let lacking = max(0, whole - log.bytes)
        findings.append(
            room < max(lacking, most / 10)
                ? Finding(
                    .warning, "redis memory",
                    "\(extent), and grows to \(Magnitude.bytes(whole)) if messages keep their size, but only "
                        + "\(Magnitude.bytes(max(0, room))) of maxmemory are free; raise it: a full Redis takes no "
                        + "messages."
                )
                : Finding(
                    .good, "redis memory",
                    "\(extent), and \(Magnitude.bytes(room)) of maxmemory are free."))
        return findings
    }

    func checkPersistence(_: RedisSession, _ information: RedisInformation) -> [Finding] {
        func finding(_ severity: Finding.Severity, _ sentence: String) -> [Finding] {
            [Finding(severity, "redis persistence", sentence)]
        }
        let keepsLog = information["aof_enabled"] == "1"
        if keepsLog, information["aof_last_write_status"] == "err" || information["aof_last_bgrewrite_status"] == "err"
        {
            return finding(.warning, "Redis cannot write its append-only file; check its log and its disk.")
        }
        if information["rdb_last_bgsave_status"] == "err" {
            return finding(
                .warning,
                "Redis cannot save its data, and may take no messages because of that; check its log and its disk, or "
                    + "set save \"\"."
            )
        }
        return finding(
            .good,
            keepsLog
                ? "Redis keeps the log over a restart (appendonly)."
                : "Redis is empty after a restart, and if that took more than 3 s, clients are told that messages may "
                    + "be missing; appendonly yes prevents this."
        )
    }

    /// A primary that was replaced while cut off still takes messages, which no other hub sees.
    func checkFailover(_: RedisSession, _ information: RedisInformation) -> [Finding] {
        guard case .sentinel(let endpoints, let name) = address.place else { return [] }
        let replicas = information.integer("connected_slaves") ?? 0
        var findings: [Finding] = []
        if replicas == 0 {
            findings.append(
                Finding(
                    .warning, "redis failover",
                    "No replica follows \(name), so Sentinel has nothing to put in its place."))
        } else if information["min_slaves_good_slaves"] == nil {
            findings.append(
                Finding(
                    .warning, "redis failover",
                    "min-replicas-to-write is 0, so a primary that is cut off goes on taking messages that are lost; set it to 1 on all servers of \(name)."
                ))
        }
        if endpoints.count < 3 {
            findings.append(
                Finding(
                    .warning, "redis failover",
                    "cluster.url names \(endpoints.count) Sentinel\(endpoints.count == 1 ? "" : "s"); name all of "
                        + "them, so that one may fail."
                ))
        }
        guard findings.isEmpty else { return findings }
        return [Finding(.good, "redis failover", "\(replicas) replicas follow \(name).")]
    }

    /// Redis cuts off a hub that hangs once this much output waits for it; the hub then reads what it missed from the
    /// log.
    func checkReaders(_ session: RedisSession, _: RedisInformation) throws(RedisFailure) -> [Finding] {
        func finding(_ severity: Finding.Severity, _ sentence: String) -> [Finding] {
            [Finding(severity, "redis readers", sentence)]
        }
        let name = "client-output-buffer-limit"
        let answer = try session.runCommand("CONFIG", "GET", .text(name))
        guard let text = answer.elements?.last?.text else {
            return finding(
                .good, "\(name) is not shown to this user; Redis' default, 32 MB for pubsub, is enough.")
        }
        let words = text.split(separator: " ")
        guard let place = words.firstIndex(of: "pubsub"), words.count > place + 3,
            let hard = Int64(words[place + 1]), let soft = Int64(words[place + 2])
        else { return [] }
        guard (hard == 0 || hard >= limits.readerBytes.hard) && (soft == 0 || soft >= limits.readerBytes.soft) else {
            return finding(
                .warning,
                "\(name) cuts off a hub for which \(Magnitude.bytes(hard)) wait, or \(Magnitude.bytes(soft)) for "
                    + "\(words[place + 3]) s, as may happen in a burst; set pubsub 33554432 8388608 60."
            )
        }
        return finding(
            .good,
            hard == 0
                ? "A hub that hangs is never cut off (\(name)): what waits for it takes up Redis' memory."
                : "A hub for which \(Magnitude.bytes(hard)) wait is cut off (\(name)), and reads them from the log.")
    }

    func checkClock(_ session: RedisSession, _: RedisInformation) throws(RedisFailure) -> [Finding] {
        let before = Date().timeIntervalSince1970
        let parts = try session.runCommand("TIME").elements?.compactMap { $0.text.flatMap { Double($0) } } ?? []
        let after = Date().timeIntervalSince1970
        guard parts.count == 2 else { return [] }
        let theirs = parts[0] + parts[1] / 1e6
        let skew = max(0, before - theirs, theirs - after)
        return Duration.seconds(skew) <= limits.clock
            ? [Finding(.good, "redis clock", "The clocks here and at Redis agree.")]
            : [
                Finding(
                    .warning, "redis clock",
                    "The clocks here and at Redis differ by \(String(format: "%.1f", skew)) s; run NTP on both.")
            ]
    }

    /// A message from a hub takes one round trip, a message to it half of one.
    func checkLatency(_ session: RedisSession, _: RedisInformation) throws(RedisFailure) -> [Finding] {
        var times: [Duration] = []
        for _ in 0..<21 {
            let start = ContinuousClock.now
            _ = try session.runCommand("PING")
            times.append(.now - start)
        }
        times.sort()
        let median = times[times.count / 2]
        let shown =
            "half of 21 questions were answered within \(Self.millisecondsText(median)) ms, all within \(Self.millisecondsText(times[times.count - 1]))"
        return median <= limits.latency
            ? [Finding(.good, "redis latency", shown.prefix(1).uppercased() + shown.dropFirst() + ".")]
            : [
                Finding(
                    .warning, "redis latency",
                    "Messages between hubs take as long as a round trip to Redis: \(shown); put it near the hubs.")
            ]
    }

    private static func millisecondsText(_ duration: Duration) -> String {
        String(format: "%.2f", duration / .milliseconds(1))
    }

    /// Each hub subscribes to the cluster's channel and to one of its own, even if its name is taken.
    func checkHubs(_ session: RedisSession, _: RedisInformation) throws(RedisFailure) -> [Finding] {
        let answer =
            try session.runCommand(
                "PUBSUB", "NUMSUB", .text(keys.channel), .text(keys.channel(of: node))
            ).elements ?? []
        guard answer.count == 4, case .integer(let all) = answer[1], case .integer(let own) = answer[3] else {
            return []
        }
        guard own < 2 else {
            return [
                Finding(
                    .error, "redis hubs",
                    "\(own) hubs of this cluster are called \(node), and one of them stays alone; give each a node.name of its own."
                )
            ]
        }
        let others = all - own
        let there = others == 1 ? "1 other hub is" : "\(others) other hubs are"
        return [
            Finding(
                .good, "redis hubs",
                own == 1
                    ? "One hub is called \(node), and \(there) connected."
                    : "No hub is called \(node) at present, and \(there) connected.")
        ]
    }
}

/// The approximate size of the log, from its number of entries and the size of the newest ones.
struct RedisLogSize {
    private(set) var entries: Int64 = 0
    /// The size of an entry in Redis besides its bytes.
    private static let overhead: Int64 = 20
    private var mean: Int64 = 0

    init(_ session: RedisSession, _ keys: LogKeys) throws(RedisFailure) {
        guard
            let first = try Self.parseEntries(session.runCommand("XRANGE", .text(keys.log), "-", "+", "COUNT", 1)).first
        else {
            return
        }
        let newest = try Self.parseEntries(session.runCommand("XREVRANGE", .text(keys.log), "+", "-", "COUNT", 10))
        guard let last = newest.first else { return }
        mean = newest.reduce(0) { $0 + $1.bytes } / Int64(newest.count) + Self.overhead
        // Offsets are dense within an epoch; the head has the ends of all epochs before the last.
        let head = try session.runCommand("GET", .text(keys.head))
        let ends = Self.olderEpochs(head).filter { $0.epoch >= first.id.epoch && $0.epoch < last.id.epoch } + [last.id]
        entries = ends.reduce(0) { $0 + $1.offset + 1 } - first.id.offset
    }

    var bytes: Int64 { entries * mean }

    /// The size of `entries` like the newest ones.
    func bytes(of entries: Int) -> Int64 { Int64(entries) * mean }

    /// Empty if there is no head, or an invalid one that hubs will replace.
    private static func olderEpochs(_ head: RedisValue) -> [LogEntryID] {
        do throws(LogRefusal) { return try LogScripts.parseHead(head)?.older ?? [] } catch { return [] }
    }

    private static func parseEntries(_ value: RedisValue) -> [(id: LogEntryID, bytes: Int64)] {
        (value.elements ?? []).compactMap { element -> (id: LogEntryID, bytes: Int64)? in
            guard let parts = element.elements, parts.count == 2, let id = parts[0].text.flatMap({ LogEntryID($0) })
            else { return nil }
            var size: Int64 = 0
            for case .bytes(let bytes) in parts[1].elements ?? [] { size += Int64(bytes.count) }
            return (id: id, bytes: size)
        }
    }
}

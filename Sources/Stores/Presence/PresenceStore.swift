import Hub
import Logging
import Postgres
import Workers

/// Writes the changes of the log to `roost.presence`.
struct PresenceStore: ~Copyable {
    private let node: String
    private let log: PresenceLog
    /// Set while the table's content is unknown: outdated rows have to be deleted, and all presences written.
    private var isFromTheStart = true
    private var retry: RetrySchedule

    /// The most changes per statement.
    private static let batch = 2000
    /// The most bytes of payloads in a statement with more than one.
    private static let batchBytes = 2_000_000
    /// The most statements per pass: more than one only if many members came or left at once.
    private static let batchesInPass = 5

    init(node: String, log: PresenceLog, firstRetry: Duration) {
        self.node = node
        self.log = log
        retry = RetrySchedule(first: firstRetry)
    }

    /// Prepares for a new connection: the table may have changed in the meantime, and has to be corrected.
    mutating func startSession() {
        isFromTheStart = true
        retry.retryNow()
    }

    /// Writes what is waiting.
    ///
    /// - Parameter isLast: writes everything, regardless of recent failures.
    /// - Returns: true if everything that was waiting at the start is written.
    /// - Throws: `PostgresError` if the connection has to be abandoned.
    mutating func writeWaiting(
        on connection: PostgresConnection, isLast: Bool, _ statistics: inout PresenceStatistics,
        _ warnings: inout RateLimitedLog
    ) throws -> Bool {
        guard retry.isDue(at: .now) || isLast else { return false }
        do {
            if isFromTheStart { try startAnew(on: connection) }
            let isAllWritten = try writeBatches(
                isLast ? .max : Self.batchesInPass, on: connection, &statistics, &warnings)
            retry.attemptSucceeded()
            return isAllWritten
        } catch let error as PostgresError where !connection.isBroken {
            statistics.failures += 1
            warnings.logWarning("Who is present is not written to roost.presence for now: \(error.message)")
            isFromTheStart = true
            retry.attemptFailed(at: .now)
            return false
        }
    }

    private mutating func startAnew(on connection: PostgresConnection) throws {
        log.takeFromTheStart()
        let all = log.takeChanges()
        // They have to be written in any case.
        defer { log.giveBack(all) }
        var refs = TextArray()
        for change in all { refs.append(change.ref.utf8) }
        _ = try connection.query(PresenceSQL.forgetPresence, [node, refs.literal])
        isFromTheStart = false
    }

    private func writeBatches(
        _ count: Int, on connection: PostgresConnection, _ statistics: inout PresenceStatistics,
        _ warnings: inout RateLimitedLog
    ) throws -> Bool {
        for _ in 0..<count {
            let changes = log.takeChanges(upTo: Self.batch)
            guard !changes.isEmpty else { return true }
            do {
                try storeChanges(changes[...], on: connection, &statistics, &warnings)
            } catch {
                log.giveBack(changes)
                throw error
            }
            if changes.count < Self.batch { return true }
        }
        return false
    }

    /// If Postgres refuses some values, as a database with another encoding than UTF-8 may, the others are written all
    /// the same.
    private func storeChanges(
        _ changes: ArraySlice<PresenceLog.Change>, on connection: PostgresConnection,
        _ statistics: inout PresenceStatistics, _ warnings: inout RateLimitedLog
    ) throws {
        let bytes = changes.reduce(0) { $0 + ($1.record?.payload.count ?? 0) }
        if bytes <= Self.batchBytes || changes.count == 1 {
            do {
                _ = try connection.query(PresenceSQL.storePresence, PresenceBatch(changes).parameters(of: node))
                statistics.batches += 1
                statistics.rows += changes.count
                return
            } catch let error as PostgresError where error.isAboutValues {
                guard changes.count > 1 else {
                    statistics.refusedRows += 1
                    return warnings.logWarning(
                        "Postgres refuses some presences, which are therefore missing after a restart: \(error.message)"
                    )
                }
            }
        }
        let middle = changes.startIndex + changes.count / 2
        try storeChanges(changes[..<middle], on: connection, &statistics, &warnings)
        try storeChanges(changes[middle...], on: connection, &statistics, &warnings)
    }
}

extension PostgresError {
    /// Class 22 (data exception) and 54 (a value is too large): other rows may still be accepted.
    fileprivate var isAboutValues: Bool {
        guard kind == .server, let sqlState else { return false }
        return sqlState.hasPrefix("22") || sqlState.hasPrefix("54")
    }
}

/// Changes as parameters of the statement `storePresence`.
struct PresenceBatch {
    private var gone = TextArray()
    private var refs = TextArray()
    private var topics = TextArray()
    private var privates = TextArray()
    private var keys = TextArray()
    private var madeKeys = TextArray()
    private var users = TextArray()
    private var payloads = TextArray()
    private var appStates = TextArray()

    init(_ changes: ArraySlice<PresenceLog.Change>) {
        for change in changes {
            guard let record = change.record else {
                gone.append(change.ref.utf8)
                continue
            }
            refs.append(change.ref.utf8)
            topics.append(StoredText.encode(record.channel.topic))
            privates.append(record.channel.isPrivate)
            keys.append(StoredText.encode(record.key))
            madeKeys.append(record.hasMadeKey)
            users.append(record.user.map { StoredText.encode($0.text) })
            payloads.append(record.payload)
            appStates.append(record.appState?.rawValue.utf8)
        }
    }

    func parameters(of node: String) -> [String?] {
        let arrays = [gone, refs, topics, privates, keys, madeKeys, users, payloads, appStates]
        return [node] + arrays.map(\.literal)
    }
}

/// Encodes any string for Postgres, whose texts cannot contain U+0000, whereas JSON strings can
/// (SchemaPresence.sql).
enum StoredText {
    private static let backslash = UInt8(ascii: "\\")

    static func encode(_ string: String) -> [UInt8] {
        let bytes = Array(string.utf8)
        guard bytes.contains(where: { $0 == 0 || $0 == backslash }) else { return bytes }
        return bytes.flatMap { byte -> [UInt8] in
            switch byte {
            case 0: [backslash, UInt8(ascii: "0")]
            case backslash: [backslash, backslash]
            default: [byte]
            }
        }
    }

    static func decode(_ stored: String) -> String {
        guard stored.utf8.contains(backslash) else { return stored }
        var bytes: [UInt8] = []
        var isEscaped = false
        for byte in stored.utf8 {
            if isEscaped {
                bytes.append(byte == UInt8(ascii: "0") ? 0 : byte)
                isEscaped = false
            } else if byte == backslash {
                isEscaped = true
            } else {
                bytes.append(byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}

import CLuaFiles

/// An entry's id in the stream: its epoch, and its offset within it. Written `EPOCH-OFFSET`.
package struct LogEntryID: Sendable, Hashable, Comparable, CustomStringConvertible {
    package var epoch: UInt64
    /// From 0, without gaps; -1 is before the first.
    package var offset: Int64

    package init(epoch: UInt64, offset: Int64) {
        self.epoch = epoch
        self.offset = offset
    }

    /// Nil for invalid ids: beyond these bounds the scripts, whose numbers are doubles, would lose count; they begin another epoch instead.
    init?(epoch: some StringProtocol, offset: some StringProtocol) {
        guard let epoch = UInt64(epoch), epoch <= 1 << 52, let offset = Int64(offset), -1...(1 << 40) ~= offset else {
            return nil
        }
        self.init(epoch: epoch, offset: offset)
    }

    /// Nil for invalid ids.
    package init?(_ text: String) {
        let parts = text.split(separator: "-", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2 else { return nil }
        self.init(epoch: parts[0], offset: parts[1])
    }

    package var description: String { "\(epoch)-\(offset)" }

    package static func < (one: LogEntryID, other: LogEntryID) -> Bool {
        (one.epoch, one.offset) < (other.epoch, other.offset)
    }
}

/// The answer to opening the log.
package struct LogOpening: Sendable, Equatable {
    /// The last entry; its offset is -1 if the epoch has none yet.
    package var head: LogEntryID
    /// The tag of that entry; 0 if there is none.
    package var tag: UInt64
    /// The last entries of older epochs, newest first, at most 16.
    package var older: [LogEntryID]
}

/// An entry as stored in the stream.
package struct StoredLogEntry: Sendable, Equatable {
    package var id: LogEntryID
    package var tagBefore: UInt64
    package var tag: UInt64
    package var batch: [UInt8]
}

/// A part of the log.
package struct LogPiece: Sendable, Equatable {
    /// Oldest first, without gaps except for entries trimmed before the first.
    package var entries: [StoredLogEntry]
    /// Whether there was nothing more to read at that time.
    package var isAtEnd: Bool
}

/// Why a script of the log, or a read, had no result.
package enum LogRefusal: Error, Sendable, Equatable {
    /// The log is in another epoch than the caller's, and nothing was written: open it again.
    case otherEpoch
    /// The answer has an unknown form: a server error, or data written under these keys by another program.
    case unexpected(String)
}

/// The scripts for the log that hubs share: queues the calls, and parses the answers.
///
/// The invariants are in `Lua/Open.lua`, `Lua/Publish.lua`, `Lua/Read.lua` and `Lua/RemoveForeignLease.lua`.
package struct LogScripts: Sendable {
    package static let open = RedisScript(roost_lua_open())
    package static let publish = RedisScript(roost_lua_publish())
    package static let read = RedisScript(roost_lua_read())
    package static let removeForeignLease = RedisScript(roost_lua_remove_foreign_lease())
    package static let all = [open, publish, read, removeForeignLease]

    private let keys: LogKeys

    package init(_ keys: LogKeys) { self.keys = keys }

    /// Queues the opening of the log, which must precede any publishing after each `whole`.
    ///
    /// - Parameter leastEpoch: milliseconds since 1970, and greater than any epoch that the caller knows.
    /// - Returns: as for `RedisLink`'s commands.
    package func queueOpening(leastEpoch: UInt64, on link: RedisLink, tag: UInt64, at now: RedisLink.Instant) -> Bool {
        link.queueCall(
            Self.open, keys: [keys.log, keys.head], arguments: [.integer(Int64(clamping: leastEpoch))], tag: tag,
            at: now)
    }

    package static func parseOpening(_ value: RedisValue) throws(LogRefusal) -> LogOpening {
        let texts = (value.elements ?? []).map(\.text)
        guard texts.count >= 3, let epoch = texts[0], let offset = texts[1],
            let head = LogEntryID(epoch: epoch, offset: offset), let tag = texts[2].flatMap({ UInt64($0) })
        else { throw makeRefusal(value) }
        return LogOpening(
            head: head, tag: tag,
            older: texts.dropFirst(3).compactMap { $0.flatMap { LogEntryID($0) } })
    }

    /// Queues the publishing of one entry.
    ///
    /// - Parameters:
    ///   - entryTag: random, not 0.
    ///   - length: the approximate number of entries that the log keeps.
    /// - Returns: as for `RedisLink`'s commands.
    package func queuePublishing(
        _ batch: [UInt8], in epoch: UInt64, entryTag: UInt64, length: Int, on link: RedisLink, tag: UInt64,
        at now: RedisLink.Instant
    ) -> Bool {
        link.queueCall(
            Self.publish, keys: [keys.log, keys.head],
            arguments: [
                .text(keys.channel), .text(String(epoch)), .text(String(entryTag)), .integer(Int64(length)),
                .bytes(batch),
            ], tag: tag, at: now)
    }

    /// The offset of the published entry.
    package static func parsePublished(_ value: RedisValue) throws(LogRefusal) -> Int64 {
        if case .integer(let offset) = value, 0...(1 << 40) ~= offset { return offset }
        throw makeRefusal(value)
    }

    /// Queues reading entries, oldest first: as many as fill an answer of a megabyte, and one more.
    ///
    /// - Parameters:
    ///   - last: nil for the end of the log.
    ///   - count: the most entries to read.
    /// - Returns: as for `RedisLink`'s commands.
    package func queueReading(
        after place: LogEntryID, through last: LogEntryID? = nil, count: Int = 1000, on link: RedisLink, tag: UInt64,
        at now: RedisLink.Instant
    ) -> Bool {
        let start = place.offset < 0 ? "\(place.epoch)-0" : "(\(place)"
        return link.queueCall(
            Self.read, keys: [keys.log],
            arguments: [
                .text(start), .text(last?.description ?? "+"), .integer(Int64(count)), .integer(Self.answerSize),
            ], tag: tag, at: now)
    }

    private static let answerSize: Int64 = 1 << 20

    package static func parsePiece(_ value: RedisValue) throws(LogRefusal) -> LogPiece {
        guard let parts = value.elements, parts.count == 2, case .integer(let isAtEnd) = parts[0],
            let elements = parts[1].elements
        else { throw makeRefusal(value) }
        var entries: [StoredLogEntry] = []
        entries.reserveCapacity(elements.count)
        for element in elements {
            guard let parts = element.elements, parts.count == 2, let text = parts[0].text else {
                throw makeRefusal(value)
            }
            // Written by another program, after everything that hubs write.
            guard let id = LogEntryID(text) else { continue }
            // A damaged entry keeps its place: the log reader continues after it, and finds that something is missing.
            entries.append(parseEntry(id, parts[1]) ?? StoredLogEntry(id: id, tagBefore: 0, tag: 0, batch: []))
        }
        return LogPiece(entries: entries, isAtEnd: isAtEnd == 1 || entries.isEmpty)
    }

    /// Queues reading the head of the log; writes nothing.
    ///
    /// - Returns: as for `RedisLink`'s commands.
    package func readHead(on link: RedisLink, tag: UInt64, at now: RedisLink.Instant) -> Bool {
        link.queueCommand(["GET", .text(keys.head)], tag: tag, at: now)
    }

    /// The head of the log; nil if there is none, so that the log must be opened again. The epoch of a lost primary is returned as it was.
    package static func parseHead(_ value: RedisValue) throws(LogRefusal) -> LogOpening? {
        if case .null = value { return nil }
        let words = (value.text ?? "").split(separator: " ")
        guard words.count >= 4, let head = LogEntryID(epoch: words[0], offset: words[1]), let tag = UInt64(words[3])
        else { throw makeRefusal(value) }
        return LogOpening(
            head: head, tag: tag,
            older: words.dropFirst(4).compactMap { LogEntryID(String($0)) })
    }

    /// The boot that holds a lease; nil if no hub does, or if it could not be read.
    package static func leaseHolder(_ value: RedisValue) -> UInt64? { value.text.flatMap { UInt64($0) } }

    /// Whether the value in place of a lease cannot come from a hub: it has another type, or is not a number. Such a
    /// value belongs to no hub and may never expire. Redis' other errors say nothing about it.
    package static func isForeignLease(_ value: RedisValue) -> Bool {
        switch value {
        case .error(let text): text.hasPrefix("WRONGTYPE")
        case .bytes: leaseHolder(value) == nil
        default: false
        }
    }

    /// Queues removing a foreign value in place of a lease, unless it is a lease by then.
    ///
    /// - Returns: as for `RedisLink`'s commands.
    package func removeForeignLease(of hub: String, on link: RedisLink, tag: UInt64, at now: RedisLink.Instant) -> Bool
    {
        link.queueCall(Self.removeForeignLease, keys: [keys.lease(of: hub)], arguments: [], tag: tag, at: now)
    }

    private static func parseEntry(_ id: LogEntryID, _ value: RedisValue) -> StoredLogEntry? {
        guard let fields = value.elements, fields.count == 6, fields[0].text == "p", fields[2].text == "t",
            fields[4].text == "b", let before = fields[1].text.flatMap({ UInt64($0) }),
            let tag = fields[3].text.flatMap({ UInt64($0) }), case .bytes(let batch) = fields[5]
        else { return nil }
        return StoredLogEntry(id: id, tagBefore: before, tag: tag, batch: batch)
    }

    private static func makeRefusal(_ value: RedisValue) -> LogRefusal {
        guard case .error(let text) = value else { return .unexpected("the answer has another form") }
        return text.hasPrefix("EPOCH") ? .otherEpoch : .unexpected(text)
    }
}

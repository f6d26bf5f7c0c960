import CLuaFiles

/// The state of the log of one stream that hubs share: its id and its length in bytes.
package struct SharedStreamPlace: Sendable, Hashable {
    package var id: UInt64
    package var length: Int

    package init(id: UInt64, length: Int) {
        self.id = id
        self.length = length
    }

    /// Parses the index's form "ID LENGTH". Nil for anything else.
    package init?(_ text: String) {
        let words = text.split(separator: " ")
        guard words.count == 2, let id = UInt64(words[0], radix: 16), let length = StreamNumber.parseCount(words[1]),
            length > 0
        else { return nil }
        self.init(id: id, length: length)
    }
}

/// Numbers about streams in Redis, within the range of a script's doubles, so that sums cannot overflow.
private enum StreamNumber {
    static func parseCount(_ text: some StringProtocol) -> Int? {
        Int(text).flatMap { 0...(1 << 52) ~= $0 ? $0 : nil }
    }

    static func parseEpoch(_ text: some StringProtocol) -> UInt64? {
        UInt64(text).flatMap { $0 <= 1 << 52 ? $0 : nil }
    }
}

/// One change of a shared stream, as its writer requests it and as the other hubs receive it.
package struct SharedStreamChange: Sendable, Equatable {
    package enum Kind: String, Sendable {
        /// Without bytes it changes nothing, and checks whether the writer knows the whole log.
        case append = "w"
        case remove = "d"
        /// Removes the stream because its next generation follows.
        case supersede = "s"
        /// Not written: the stream's producer was heard, its connection broke, or the stream was read.
        case heard = "h"
        case broken = "b"
        case used = "u"
    }

    package enum Before: Sendable, Equatable {
        case absent
        case any
        case length(Int)

        var text: String {
            switch self {
            case .absent: "-1"
            case .any: "*"
            case .length(let length): String(length)
            }
        }
    }

    package var kind: Kind
    package var name: String
    package var id: UInt64
    /// The length of the log before the change.
    package var before: Before
    package var bytes: [UInt8]

    package init(_ kind: Kind, name: String, id: UInt64, before: Before, bytes: [UInt8] = []) {
        self.kind = kind
        self.name = name
        self.id = id
        self.before = before
        self.bytes = bytes
    }

    /// The published form.
    fileprivate var line: String { "\(kind.rawValue) \(String(id, radix: 16)) \(before.text) \(name)" }

    fileprivate init?(line: String, bytes: [UInt8]) {
        let words = line.split(separator: " ", maxSplits: 3, omittingEmptySubsequences: false)
        guard words.count == 4, let kind = Kind(rawValue: String(words[0])), let id = UInt64(words[1], radix: 16) else {
            return nil
        }
        let before: Before
        switch words[2] {
        case "-1": before = .absent
        case "*": before = .any
        default:
            guard let length = StreamNumber.parseCount(words[2]) else { return nil }
            before = .length(length)
        }
        self.init(kind, name: String(words[3]), id: id, before: before, bytes: bytes)
    }
}

/// The changes of one call of a hub, as published to all.
package struct SharedStreamNews: Sendable, Equatable {
    package var epoch: UInt64
    /// The number of this write in the epoch, from 1 and without gaps; nil if nothing was written.
    package var count: Int?
    /// The process that wrote it.
    package var process: UInt64
    package var changes: [SharedStreamChange]

    package init(epoch: UInt64, count: Int?, process: UInt64, changes: [SharedStreamChange]) {
        self.epoch = epoch
        self.count = count
        self.process = process
        self.changes = changes
    }

    /// Nil for anything else: another program published it.
    package init?(_ bytes: [UInt8]) {
        guard let end = bytes.prefix(100).firstIndex(of: UInt8(ascii: "\n")) else { return nil }
        let words = String(decoding: bytes[..<end], as: UTF8.self).split(separator: " ")
        guard words.count == 3, let epoch = StreamNumber.parseEpoch(words[0]), let process = UInt64(words[2], radix: 16)
        else { return nil }
        self.init(epoch: epoch, count: StreamNumber.parseCount(words[1]), process: process, changes: [])
        var place = end + 1
        func readNumber() -> Int? {
            guard bytes.count - place >= 4 else { return nil }
            defer { place += 4 }
            return (0..<4).reduce(0) { $0 | Int(bytes[place + $1]) << (8 * $1) }
        }
        while place < bytes.count {
            guard let lineLength = readNumber(), let length = readNumber(), lineLength + length <= bytes.count - place,
                let line = String(validating: bytes[place..<(place + lineLength)], as: UTF8.self),
                let change = SharedStreamChange(
                    line: line, bytes: Array(bytes[(place + lineLength)..<(place + lineLength + length)]))
            else { return nil }
            changes.append(change)
            place += lineLength + length
        }
    }

    /// The form to publish without a script.
    package var encoded: [UInt8] {
        var out = Array("\(epoch) \(count.map(String.init) ?? "-") \(String(process, radix: 16))\n".utf8)
        for change in changes {
            let line = Array(change.line.utf8)
            for number in [line.count, change.bytes.count] {
                for byte in 0..<4 { out.append(UInt8(truncatingIfNeeded: number >> (8 * byte))) }
            }
            out += line + change.bytes
        }
        return out
    }
}

/// The answer to opening the streams.
package struct SharedStreamsOpening: Sendable, Equatable {
    package var epoch: UInt64
    /// The number of writes in this epoch.
    package var count: Int
    /// How long hubs may still write back what Redis lacks; nothing else is accepted until then.
    package var settles: Duration
}

/// The outcome of a change.
package enum SharedStreamOutcome: Sendable, Equatable {
    case done
    /// The stream has another id or length, and nothing was changed; nil if there is no such stream.
    case elsewhere(SharedStreamPlace?)
}

/// The scripts for streams that hubs share: queues the calls, and parses the answers.
///
/// The invariants are in `Lua/OpenStreams.lua` and `Lua/WriteStreams.lua`.
package struct StreamScripts: Sendable {
    package static let open = RedisScript(roost_lua_open_streams())
    package static let write = RedisScript(roost_lua_write_streams())
    package static let all = [open, write]

    private let keys: LogKeys

    package init(_ keys: LogKeys) { self.keys = keys }

    /// Queues the opening, which must precede any writing after each `whole`.
    ///
    /// - Parameters:
    ///   - leastEpoch: milliseconds since 1970, and greater than any epoch that the caller knows.
    ///   - settling: how long a new epoch accepts only what is written back.
    /// - Returns: as for `RedisLink`'s commands.
    package func queueOpening(
        leastEpoch: UInt64, settling: Duration, on link: RedisLink, tag: UInt64, at now: RedisLink.Instant
    ) -> Bool {
        let (seconds, attoseconds) = settling.components
        return link.queueCall(
            Self.open, keys: [keys.streamsHead, keys.streams],
            arguments: [
                .integer(Int64(clamping: leastEpoch)), .integer(seconds * 1000 + attoseconds / 1_000_000_000_000_000),
            ], tag: tag, at: now)
    }

    package static func parseOpening(_ value: RedisValue) -> SharedStreamsOpening? {
        let texts = (value.elements ?? []).map(\.text)
        guard texts.count == 3, let epoch = texts[0].flatMap({ StreamNumber.parseEpoch($0) }),
            let count = texts[1].flatMap({ StreamNumber.parseCount($0) }),
            let settles = texts[2].flatMap({ StreamNumber.parseCount($0) })
        else { return nil }
        return SharedStreamsOpening(epoch: epoch, count: count, settles: .milliseconds(settles))
    }

    /// The epoch and the count of a head; nil if there is none.
    package static func parseHead(_ value: RedisValue) -> (epoch: UInt64, count: Int)? {
        let words = (value.text ?? "").split(separator: " ")
        guard words.count == 4, let epoch = StreamNumber.parseEpoch(words[0]),
            let count = StreamNumber.parseCount(words[1])
        else { return nil }
        return (epoch, count)
    }

    /// Queues changes, each of which succeeds or fails on its own.
    ///
    /// - Parameters:
    ///   - process: the caller's, so that it recognizes its own publications.
    ///   - isReturned: the changes had been in Redis before, which lost them.
    /// - Returns: as for `RedisLink`'s commands.
    package func queueChanges(
        _ changes: [SharedStreamChange], in epoch: UInt64, by process: UInt64, isReturned: Bool, on link: RedisLink,
        tag: UInt64, at now: RedisLink.Instant
    ) -> Bool {
        var arguments: [RedisArgument] = [
            .text(keys.streamsChannel), .text(String(epoch)), .text(String(process, radix: 16)),
            .integer(isReturned ? 1 : 0),
        ]
        for change in changes {
            arguments += [
                .text(change.kind.rawValue), .text(change.name), .text(String(change.id, radix: 16)),
                .text(change.before.text), .bytes(change.bytes),
            ]
        }
        return link.queueCall(
            Self.write, keys: [keys.streams, keys.streamsHead], arguments: arguments, tag: tag, at: now)
    }

    /// Nil if the outcomes are unknown, or nothing was done.
    package static func parseOutcomes(_ value: RedisValue) -> [SharedStreamOutcome]? {
        value.elements?.map { element in
            if case .integer(1) = element { .done } else { .elsewhere(element.text.flatMap { SharedStreamPlace($0) }) }
        }
    }

    /// The whole index; nil if the answer has another form.
    package static func parseIndex(_ value: RedisValue) -> [(name: String, place: SharedStreamPlace)]? {
        guard let elements = value.elements, elements.count.isMultiple(of: 2) else { return nil }
        var found: [(name: String, place: SharedStreamPlace)] = []
        found.reserveCapacity(elements.count / 2)
        for place in stride(from: 0, to: elements.count, by: 2) {
            guard let name = elements[place].text, let at = elements[place + 1].text.flatMap({ SharedStreamPlace($0) })
            else { continue }
            found.append((name, at))
        }
        return found
    }
}

extension RedisScript {
    init(_ file: roost_lua_file) {
        self.init(String(decoding: UnsafeBufferPointer(start: file.text, count: file.length), as: UTF8.self))
    }
}

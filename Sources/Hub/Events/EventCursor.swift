/// Where a reader of events is in one of its channels.
package struct EventPosition: Sendable, Equatable {
    /// The cursor of the last row change that it has, or of the present when it had all.
    package var rows: String?
    /// The id of the last kept message.
    package var history: String?
    package var stream: Stream?

    package struct Stream: Sendable, Equatable {
        package let id: UInt64
        package let offset: Int

        package init(id: UInt64, offset: Int) {
            self.id = id
            self.offset = offset
        }
    }

    package init(rows: String? = nil, history: String? = nil, stream: Stream? = nil) {
        self.rows = rows
        self.history = history
        self.stream = stream
    }

    var isNowhere: Bool { rows == nil && history == nil && stream == nil }
}

/// Where a reader of events is in all of its channels: the `id` of server-sent events, which a browser sends back by itself as
/// `Last-Event-ID` (WHATWG HTML, 9.2.3).
///
/// Text of visible ASCII that is opaque to clients: `1`, and for each channel `~`, a hash of its key, and what is known behind a `!`
/// and a letter. Nobody signs it, as it opens nothing: it says from where on something is wanted that its bearer may read.
package struct EventCursor: Sendable, Equatable {
    private var positions: [UInt32: EventPosition] = [:]

    /// Bytes of one: a header that every proxy takes.
    package static let longest = 4096
    private static let version: Character = "1"

    /// - Returns: nil where `text` is none that `text` makes.
    package init?(_ text: String) {
        guard text.utf8.count <= Self.longest, text.first == Self.version else { return nil }
        var rows: String?
        for channel in text.dropFirst().split(separator: "~", omittingEmptySubsequences: false).dropFirst() {
            let parts = channel.split(separator: "!", omittingEmptySubsequences: false)
            guard let hash = parts.first.flatMap({ UInt32($0, radix: 36) }) else { return nil }
            var position = EventPosition()
            for part in parts.dropFirst() {
                let value = String(part.dropFirst())
                switch part.first {
                case "r":
                    // Most have it as the one before.
                    if !value.isEmpty { rows = value }
                    position.rows = rows
                case "h": position.history = value
                case "s":
                    let numbers = value.split(separator: "-", omittingEmptySubsequences: false)
                    guard numbers.count == 2, let id = UInt64(numbers[0], radix: 16), let offset = Int(numbers[1]),
                        offset >= 0
                    else { return nil }
                    position.stream = .init(id: id, offset: offset)
                default: return nil
                }
            }
            positions[hash] = position
        }
        guard text.count == 1 || !positions.isEmpty else { return nil }
    }

    package subscript(_ key: ChannelKey) -> EventPosition? { positions[Self.hash(key)] }

    /// Nil where it would be too long: its client keeps the one before, and gets twice what came since.
    package static func text(_ channels: [(key: ChannelKey, position: EventPosition)]) -> String? {
        var text = String(version)
        var rows: String?
        for (key, position) in channels where !position.isNowhere {
            text += "~" + String(hash(key), radix: 36)
            if let cursor = position.rows {
                text += cursor == rows ? "!r" : "!r" + cursor
                rows = cursor
            }
            if let history = position.history { text += "!h" + history }
            if let stream = position.stream { text += "!s\(String(stream.id, radix: 16))-\(stream.offset)" }
        }
        return text.utf8.count <= longest ? text : nil
    }

    /// The same in every process (FNV-1a). Two channels of one connection that have the same take each other's positions, which
    /// belong to no history of theirs.
    private static func hash(_ key: ChannelKey) -> UInt32 {
        var hash: UInt32 = 2_166_136_261
        for byte in key.topic.utf8 { hash = (hash ^ UInt32(byte)) &* 16_777_619 }
        return key.isPrivate ? ~hash : hash
    }
}

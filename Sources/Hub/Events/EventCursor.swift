/// A reader's position in one of its channels.
package struct EventPosition: Sendable, Equatable {
    /// The cursor of the last row change that the reader has, or the current cursor if it had all.
    package var rows: String?
    /// The ID of the last kept message.
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

/// A reader's position in all of its channels: the `id` of server-sent events, which a browser sends back by itself as
/// `Last-Event-ID` (WHATWG HTML, 9.2.3).
///
/// Visible ASCII that is opaque to clients: `1`, and for each channel `~`, a hash of its key, and each known position
/// after a `!` and a letter. It is not signed, as it grants nothing: it only says where to resume something its bearer
/// may read.
package struct EventCursor: Sendable, Equatable {
    private var positions: [UInt32: EventPosition] = [:]

    /// The maximum number of bytes: a header that every proxy accepts.
    package static let longest = 4096
    private static let version: Character = "1"

    /// - Returns: nil unless `text` has the form that the static `text` produces.
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
                    // Most channels share the row cursor of the one before.
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

    /// Returns nil if the text would be too long: the client keeps its previous one, and gets what came since then
    /// twice.
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

    /// The same in every process (FNV-1a). If two channels of one connection collide, each takes the other's position,
    /// which does not belong to its history.
    private static func hash(_ key: ChannelKey) -> UInt32 {
        var hash: UInt32 = 2_166_136_261
        for byte in key.topic.utf8 { hash = (hash ^ UInt32(byte)) &* 16_777_619 }
        return key.isPrivate ? ~hash : hash
    }
}

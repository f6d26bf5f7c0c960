import Wire

/// The text that clients carry: base64url of the window (RFC 4648, section 5), a point, the id in base 36.
///
///     version 1, epoch (4 bytes), S1, S2
///     a snapshot: xmax, count of running transactions, and each of them; numbers as LEB128 varints, S2's xmax less
///     S1's, the running ones as their distance below xmax and then from one to the next
extension FeedCursor {
    /// As much as some thousand running transactions take.
    package static let longestText = 16_384
    private static let version: UInt8 = 1

    package var text: String { CursorWindow(epoch: epoch, seen: seen, window: window).cursor(id) }

    /// - Returns: nil where the text is none that `text` makes, whatever it is.
    package init?(_ text: String) {
        let utf8 = Array(text.utf8)
        guard utf8.count <= Self.longestText, let point = utf8.lastIndex(of: UInt8(ascii: ".")),
            let id = Int64(Substring(text.utf8.dropFirst(point + 1)), radix: 36), id >= 0,
            // Int64 would read a sign, too.
            utf8[(point + 1)...].allSatisfy({ $0 != UInt8(ascii: "+") && $0 != UInt8(ascii: "-") }),
            let bytes = Base64URL.decode(utf8[..<point])
        else { return nil }
        var reader = CursorBytes.Reader(bytes)
        guard reader.byte() == Self.version, let epoch = reader.word(), let seen = reader.snapshot(above: 0),
            let window = reader.snapshot(above: seen.xmax), reader.isAtEnd, seen.precedes(window)
        else { return nil }
        self.init(epoch: DatabaseEpoch(value: epoch), seen: seen, window: window, id: id)
    }

    fileprivate static func encoded(_ epoch: DatabaseEpoch, _ seen: Snapshot, _ window: Snapshot) -> String {
        var bytes: [UInt8] = [version]
        for shift in stride(from: 0, to: 32, by: 8) { bytes.append(UInt8(truncatingIfNeeded: epoch.value >> shift)) }
        CursorBytes.append(seen, above: 0, to: &bytes)
        CursorBytes.append(window, above: seen.xmax, to: &bytes)
        return Base64URL.encode(bytes)
    }
}

/// The cursors of one window: its part of them is made once.
package struct CursorWindow: Sendable {
    private let prefix: String

    package init(epoch: DatabaseEpoch, seen: Snapshot, window: Snapshot) {
        prefix = FeedCursor.encoded(epoch, seen, window) + "."
    }

    /// What a client has that has all of the window up to this change.
    package func cursor(_ id: Int64) -> String { prefix + String(id, radix: 36) }
}

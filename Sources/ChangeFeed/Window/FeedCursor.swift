import Wire

/// A client's position in the changes: the client has everything that one snapshot sees, and of what a later snapshot sees,
/// the changes up to an id.
///
/// A cursor is enough to continue on any hub of the same database. The rows between the two snapshots are one window of the
/// feed, which is ordered by id.
package struct FeedCursor: Sendable, Equatable {
    package let epoch: DatabaseEpoch
    /// S1: the client has everything it sees.
    package let seen: Snapshot
    /// S2, the window's end.
    package let window: Snapshot
    /// The last id of the window that the client has.
    package let id: Int64

    package init(epoch: DatabaseEpoch, seen: Snapshot, window: Snapshot, id: Int64) {
        self.epoch = epoch
        self.seen = seen
        self.window = window
        self.id = id
    }

    /// The cursor at the end of a window.
    package init(epoch: DatabaseEpoch, at snapshot: Snapshot) {
        self.init(epoch: epoch, seen: snapshot, window: snapshot, id: 0)
    }

    func hasChange(_ transaction: UInt64, _ id: Int64) -> Bool {
        seen.sees(transaction) || id <= self.id && window.sees(transaction)
    }

    /// True if the other cursor certainly has everything that this one has.
    func precedes(_ other: FeedCursor) -> Bool {
        seen.precedes(other.seen)
            && (window.precedes(other.seen) || id <= other.id && window.precedes(other.window))
    }
}

/// The text that clients carry: base64url of the window (RFC 4648, section 5), a point, the id in base 36.
///
///     version 1, epoch (4 bytes), S1, S2
///     a snapshot: xmax, count of running transactions, and each of them; numbers as LEB128 varints, S2's xmax less
///     S1's, the running ones as their distance below xmax and then from one to the next
extension FeedCursor {
    /// Room for a few thousand running transactions.
    package static let longestText = 16_384
    private static let version: UInt8 = 1

    package var text: String { CursorWindow(epoch: epoch, seen: seen, window: window).cursorText(id) }

    /// - Returns: nil for any text that `text` does not produce.
    package init?(_ text: String) {
        let utf8 = Array(text.utf8)
        guard utf8.count <= Self.longestText, let point = utf8.lastIndex(of: UInt8(ascii: ".")),
            let id = Int64(Substring(text.utf8.dropFirst(point + 1)), radix: 36), id >= 0,
            // Int64 would also accept a sign.
            utf8[(point + 1)...].allSatisfy({ $0 != UInt8(ascii: "+") && $0 != UInt8(ascii: "-") }),
            let bytes = Base64URL.decode(utf8[..<point])
        else { return nil }
        var reader = CursorBytes.Reader(bytes)
        guard reader.readByte() == Self.version, let epoch = reader.readWord(),
            let seen = reader.readSnapshot(above: 0),
            let window = reader.readSnapshot(above: seen.xmax), reader.isAtEnd, seen.precedes(window)
        else { return nil }
        self.init(epoch: DatabaseEpoch(value: epoch), seen: seen, window: window, id: id)
    }

    fileprivate static func encodeWindow(_ epoch: DatabaseEpoch, _ seen: Snapshot, _ window: Snapshot) -> String {
        var bytes: [UInt8] = [version]
        for shift in stride(from: 0, to: 32, by: 8) { bytes.append(UInt8(truncatingIfNeeded: epoch.value >> shift)) }
        CursorBytes.append(seen, above: 0, to: &bytes)
        CursorBytes.append(window, above: seen.xmax, to: &bytes)
        return Base64URL.encode(bytes)
    }
}

/// The cursors of one window, with their common part encoded once.
package struct CursorWindow: Sendable {
    private let prefix: String

    package init(epoch: DatabaseEpoch, seen: Snapshot, window: Snapshot) {
        prefix = FeedCursor.encodeWindow(epoch, seen, window) + "."
    }

    /// The cursor of a client that has the window up to and including this change.
    package func cursorText(_ id: Int64) -> String { prefix + String(id, radix: 36) }
}

/// Converts a cursor's numbers to bytes and back. Decoding never traps, because the text comes from clients.
enum CursorBytes {
    static func append(_ snapshot: Snapshot, above base: UInt64, to bytes: inout [UInt8]) {
        append(snapshot.xmax &- base, to: &bytes)
        append(UInt64(snapshot.running.count), to: &bytes)
        var before: UInt64?
        for transaction in snapshot.running {
            append(before.map { transaction &- $0 } ?? snapshot.xmax &- transaction, to: &bytes)
            before = transaction
        }
    }

    private static func append(_ number: UInt64, to bytes: inout [UInt8]) {
        var rest = number
        while rest >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(rest))
    }

    struct Reader {
        private var rest: ArraySlice<UInt8>

        init(_ bytes: [UInt8]) { rest = bytes[...] }

        var isAtEnd: Bool { rest.isEmpty }

        mutating func readByte() -> UInt8? { rest.popFirst() }

        mutating func readWord() -> UInt32? {
            var value: UInt32 = 0
            for shift in stride(from: 0, to: 32, by: 8) {
                guard let byte = readByte() else { return nil }
                value |= UInt32(byte) << shift
            }
            return value
        }

        private mutating func readNumber() -> UInt64? {
            var value: UInt64 = 0
            // Nine groups of seven bits: no transaction id is 2^63 or more.
            for shift in stride(from: 0, to: 63, by: 7) {
                guard let byte = readByte() else { return nil }
                value |= UInt64(byte & 0x7F) << shift
                if byte < 0x80 { return value }
            }
            return nil
        }

        mutating func readSnapshot(above base: UInt64) -> Snapshot? {
            guard let distance = readNumber(), let count = readNumber(), count <= UInt64(rest.count) else { return nil }
            let (xmax, isTooLarge) = base.addingReportingOverflow(distance)
            guard !isTooLarge, xmax <= UInt64(Int64.max) else { return nil }
            var running: [UInt64] = []
            for index in 0..<count {
                guard let step = readNumber(), step > 0 else { return nil }
                let start = index == 0 ? xmax.subtractingReportingOverflow(step) : nil
                let next = start ?? running[Int(index) - 1].addingReportingOverflow(step)
                guard !next.overflow, next.partialValue < xmax else { return nil }
                running.append(next.partialValue)
            }
            return Snapshot(xmax: xmax, running: running)
        }
    }
}

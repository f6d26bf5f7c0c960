/// Which version of a row a change brought: what tells a repeat from news.
///
/// Roost's cursors end in the change's number, in base 36 behind the last point. Of two changes of one row the later
/// has the higher number, whatever the clocks say. Where there is no such number (another server), the time of the
/// commit decides, and among changes of the same millisecond what they say.
package struct ChangeVersion: Equatable, Sendable {
    package let number: Int64?
    package let time: String?
    package let fingerprint: Int

    package init(_ change: RowChange) {
        number = Self.number(of: change.cursor)
        time = change.commitTime
        var hasher = Hasher()
        change.data.bytes.withUnsafeBytes { hasher.combine(bytes: $0) }
        fingerprint = hasher.finalize()
    }

    package static func number(of cursor: String?) -> Int64? {
        guard let cursor, let point = cursor.lastIndex(of: ".") else { return nil }
        let digits = cursor[cursor.index(after: point)...]
        // Int64 would read a sign, too.
        guard digits.first != "-", digits.first != "+" else { return nil }
        return Int64(digits, radix: 36)
    }
}

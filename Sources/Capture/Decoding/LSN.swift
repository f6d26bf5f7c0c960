/// A place in the WAL (Postgres' type pg_lsn): a count of bytes since the cluster was made, as `16/B374D848` in text.
package struct LSN: Hashable, Comparable, Sendable, CustomStringConvertible {
    package let rawValue: UInt64

    package init(_ rawValue: UInt64) { self.rawValue = rawValue }

    /// Nil unless `text` is a pg_lsn.
    package init?(_ text: String) {
        let halves = text.split(separator: "/", omittingEmptySubsequences: false)
        guard halves.count == 2, let high = UInt32(halves[0], radix: 16), let low = UInt32(halves[1], radix: 16) else {
            return nil
        }
        rawValue = UInt64(high) << 32 | UInt64(low)
    }

    package var description: String {
        String(rawValue >> 32, radix: 16, uppercase: true) + "/"
            + String(UInt32(truncatingIfNeeded: rawValue), radix: 16, uppercase: true)
    }

    package static func < (one: LSN, other: LSN) -> Bool { one.rawValue < other.rawValue }
}

/// What Apple names a phone, or an activity on it, by. Whoever has one and the operator's key can notify it, so it is
/// never printed whole.
package struct PushToken: Hashable, Sendable {
    /// Lower-case hexadecimal digits, as in the path of a request to APNs.
    package let hex: String

    /// Apple says not to count on a length; this only keeps out what cannot be one.
    private static let lengths = 16...1024

    /// Nil for what is not an even number of hexadecimal digits.
    package init?(_ text: String) {
        let digits = text.utf8
        guard Self.lengths.contains(digits.count), digits.count.isMultiple(of: 2),
            digits.allSatisfy({ Character(UnicodeScalar($0)).isHexDigit })
        else { return nil }
        hex = text.lowercased()
    }

    /// Enough of it to tell tokens apart, and too little to use.
    package var prefix: String { String(hex.prefix(8)) }
}

extension PushToken: CustomStringConvertible {
    package var description: String { prefix + "…" }
}

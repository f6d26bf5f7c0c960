/// A name that identifies a person or a thing: a topic, a stream, a user, a role, a device, a table.
///
/// Two names are equal if their bytes are. Postgres, tokens and clients compare them that way; Swift compares strings
/// by Unicode's canonical equivalence (Unicode Standard Annex 15), so that `é` in one scalar equals `e` with a
/// combining accent, and a user that may choose a name could take another's place. Keys of maps and sets are names,
/// never strings: `scripts/check-names.py` finds violations.
package struct Name: Sendable {
    package let text: String

    package init(_ text: String) { self.text = text }

    package init(_ text: some StringProtocol) { self.text = String(text) }

    package var utf8: String.UTF8View { text.utf8 }
    package var isEmpty: Bool { text.isEmpty }
}

extension Name: Hashable {
    package static func == (one: Name, other: Name) -> Bool { one.text.hasSameBytes(as: other.text) }

    package func hash(into hasher: inout Hasher) {
        var text = text
        text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    }
}

extension Name: Comparable {
    /// Orders by bytes, which Postgres calls the collation "C".
    package static func < (one: Name, other: Name) -> Bool { one.text.utf8.lexicographicallyPrecedes(other.text.utf8) }
}

extension Name: ExpressibleByStringLiteral {
    package init(stringLiteral text: String) { self.text = text }
}

extension Name: CustomStringConvertible {
    package var description: String { text }
}

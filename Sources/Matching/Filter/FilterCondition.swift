/// One condition of a filter, as the client wrote it.
package struct FilterCondition: Hashable, Sendable {
    package let column: String
    package let isNegated: Bool
    package let test: Test

    package init(column: String, isNegated: Bool = false, test: Test) {
        self.column = column
        self.isNegated = isNegated
        self.test = test
    }

    /// like, ilike, match or imatch
    var isPattern: Bool {
        if case .value(let name, _) = test { name.isPattern } else { false }
    }

    /// match or imatch
    var isRegularExpression: Bool {
        switch test {
        case .value(.match, _), .value(.imatch, _): true
        default: false
        }
    }

    package enum Test: Hashable, Sendable {
        /// Every operator with one value.
        case value(FilterOperator, String)
        /// `in`; nil stands for an unquoted `null`, which equals nothing.
        case list([String?])
        /// `is`
        case keyword(Keyword)
    }

    package enum Keyword: String, CaseIterable, Sendable {
        case null, `true`, `false`, unknown
    }
}

extension FilterCondition: CustomStringConvertible {
    package var description: String {
        column + "=" + (isNegated ? "not." : "") + testText
    }

    private var testText: String {
        switch test {
        case .value(let name, let value): "\(name.rawValue).\(Self.write(value, quoted: Self.needsQuotes(value)))"
        case .list(let members): "in.(\(members.map(Self.writeMember).joined(separator: ",")))"
        case .keyword(let keyword): "is.\(keyword.rawValue)"
        }
    }

    private static func writeMember(_ member: String?) -> String {
        guard let member else { return "null" }
        return write(member, quoted: member.isEmpty || member.lowercased() == "null" || needsQuotes(member))
    }

    private static func needsQuotes(_ text: String) -> Bool {
        let scalars = text.unicodeScalars
        guard let first = scalars.first, let last = scalars.last else { return true }
        return first.properties.isWhitespace || last.properties.isWhitespace
            || text.utf8.contains { FilterParser.isSpecial($0) }
    }

    private static func write(_ text: String, quoted: Bool) -> String {
        guard quoted else { return text }
        var out: [UInt8] = [UInt8(ascii: "\"")]
        for byte in text.utf8 {
            if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { out.append(UInt8(ascii: "\\")) }
            out.append(byte)
        }
        out.append(UInt8(ascii: "\""))
        return String(decoding: out, as: UTF8.self)
    }
}

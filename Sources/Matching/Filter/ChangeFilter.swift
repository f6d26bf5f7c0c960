package import Wire

/// The filter of a subscription: conditions that a row must all meet.
///
///     filter    := condition *("," condition)       a blank filter has no conditions
///     condition := column "=" ["not."] operator "." value
///     value     := raw text | '"' text in which \" and \\ stand for " and \ '"'
///     value     := "(" member *("," member) ")"     for the operator in
///     value     := null | true | false | unknown    for the operator is
///
/// Where the protocol is silent, the grammar follows the original server: a comma inside parentheses or a quoted value
/// separates nothing, a quote opens only after `.`, `(` or `,`, and a quote without an end is ordinary text.
package struct ChangeFilter: Hashable, Sendable {
    package let conditions: [FilterCondition]

    package init(conditions: [FilterCondition]) {
        self.conditions = conditions
    }

    package init(parsing text: String) throws(SubscriptionError) {
        conditions = try FilterParser(text).parseConditions()
    }
}

extension ChangeFilter: CustomStringConvertible {
    /// The canonical text: parsing it gives an equal filter, and it has quotes only where needed.
    package var description: String {
        conditions.map(\.description).joined(separator: ",")
    }
}

/// One condition of a filter, as the client wrote it.
package struct FilterCondition: Hashable, Sendable {
    package let column: Name
    package let isNegated: Bool
    package let test: Test

    package init(column: Name, isNegated: Bool = false, test: Test) {
        self.column = column
        self.isNegated = isNegated
        self.test = test
    }

    /// True for like, ilike, match and imatch.
    var isPattern: Bool {
        if case .value(let name, _) = test { name.isPattern } else { false }
    }

    /// True for match and imatch.
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
        column.text + "=" + (isNegated ? "not." : "") + testText
    }

    private var testText: String {
        switch test {
        case .value(let name, let value): "\(name.rawValue).\(Self.writeValue(value, quoted: Self.needsQuotes(value)))"
        case .list(let members): "in.(\(members.map(Self.writeMember).joined(separator: ",")))"
        case .keyword(let keyword): "is.\(keyword.rawValue)"
        }
    }

    private static func writeMember(_ member: String?) -> String {
        guard let member else { return "null" }
        return writeValue(member, quoted: member.isEmpty || member.lowercased() == "null" || needsQuotes(member))
    }

    private static func needsQuotes(_ text: String) -> Bool {
        let scalars = text.unicodeScalars
        guard let first = scalars.first, let last = scalars.last else { return true }
        return first.properties.isWhitespace || last.properties.isWhitespace
            || text.utf8.contains { FilterParser.isSpecial($0) }
    }

    private static func writeValue(_ text: String, quoted: Bool) -> String {
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

/// The operators of the filter grammar, named as clients write them.
package enum FilterOperator: String, CaseIterable, Sendable {
    case eq, neq, lt, lte, gt, gte, like, ilike, match, imatch, isdistinct
    case inList = "in"
    case isKeyword = "is"

    /// True if the operator compares with a pattern, which only text supports.
    package var isPattern: Bool {
        switch self {
        case .like, .ilike, .match, .imatch: true
        default: false
        }
    }

    static let list = allCases.map(\.rawValue).sorted().joined(separator: ", ")
}

package import Wire

/// Names and values as SQL text.
package enum SQLText {
    package static func identifier(_ name: Name) -> String {
        "\"" + doubleMark(UInt8(ascii: "\""), in: name.text) + "\""
    }

    /// A table's name as a person would type it, quoted only if necessary.
    package static func qualifiedName(_ schema: Name, _ name: Name) -> String {
        func quoteIfNeeded(_ part: Name) -> String {
            let isPlain = part.utf8.allSatisfy { byte in
                (0x61...0x7A).contains(byte) || (0x30...0x39).contains(byte) || byte == UInt8(ascii: "_")
            }
            return isPlain && part.utf8.first.map { $0 > 0x39 } == true ? part.text : identifier(part)
        }
        return quoteIfNeeded(schema) + "." + quoteIfNeeded(name)
    }

    package static func name(of table: Table) -> String {
        identifier(table.schema) + "." + identifier(table.name)
    }

    /// A literal that has the same meaning under any `standard_conforming_strings`. `text` has no NUL.
    package static func literal(_ text: String) -> String {
        let quoted = doubleMark(UInt8(ascii: "'"), in: text)
        guard text.utf8.contains(UInt8(ascii: "\\")) else { return "'" + quoted + "'" }
        return "E'" + doubleMark(UInt8(ascii: "\\"), in: quoted) + "'"
    }

    private static func doubleMark(_ mark: UInt8, in text: String) -> String {
        guard text.utf8.contains(mark) else { return text }
        var out: [UInt8] = []
        for byte in text.utf8 {
            out.append(byte)
            if byte == mark { out.append(mark) }
        }
        return String(decoding: out, as: UTF8.self)
    }
}

/// A filter's condition as a SQL expression.
///
/// Values are literals without a type, as in a handwritten WHERE clause: Postgres reads them with the type of the column,
/// without its length limits (`'1.005'` keeps its digits beside a numeric(10,2)), and the operator takes the column's own
/// collation.
enum SQLCondition {
    /// `operand` is the column's value as SQL.
    static func text(_ condition: FilterCondition, on operand: String) -> String {
        let text = positiveText(condition.test, operand)
        return condition.isNegated ? "not (\(text))" : text
    }

    private static func positiveText(_ test: FilterCondition.Test, _ operand: String) -> String {
        switch test {
        case .keyword(let keyword): "\(operand) is \(keyword.rawValue)"
        case .list(let members):
            members.isEmpty
                ? "false"
                : "\(operand) in (\(members.map { $0.map(SQLText.literal) ?? "null" }.joined(separator: ", ")))"
        case .value(let name, let value): "\(operand) \(operatorSymbol(name)) \(SQLText.literal(value))"
        }
    }

    private static func operatorSymbol(_ name: FilterOperator) -> String {
        switch name {
        case .eq: "="
        case .neq: "<>"
        case .lt: "<"
        case .lte: "<="
        case .gt: ">"
        case .gte: ">="
        case .like: "like"
        case .ilike: "ilike"
        case .match: "~"
        case .imatch: "~*"
        case .isdistinct: "is distinct from"
        case .inList: "in"
        case .isKeyword: "is"
        }
    }
}

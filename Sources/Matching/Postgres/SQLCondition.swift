/// A filter's condition as a SQL expression.
///
/// Values stand as literals without a type, as a person would write them in a WHERE clause: Postgres then reads them
/// with the type of the column, without its length limits (`'1.005'` stays what it is beside a numeric(10,2)), and the
/// operator takes the column's own collation.
enum SQLCondition {
    /// `operand` is the column's value as SQL.
    static func text(_ condition: FilterCondition, on operand: String) -> String {
        let text = positive(condition.test, operand)
        return condition.isNegated ? "not (\(text))" : text
    }

    private static func positive(_ test: FilterCondition.Test, _ operand: String) -> String {
        switch test {
        case .keyword(let keyword): "\(operand) is \(keyword.rawValue)"
        case .list(let members):
            members.isEmpty
                ? "false"
                : "\(operand) in (\(members.map { $0.map(SQLText.literal) ?? "null" }.joined(separator: ", ")))"
        case .value(let name, let value): "\(operand) \(symbol(name)) \(SQLText.literal(value))"
        }
    }

    private static func symbol(_ name: FilterOperator) -> String {
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

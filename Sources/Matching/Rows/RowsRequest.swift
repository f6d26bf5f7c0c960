package import Wire

/// One entry of a join's `config.rows`, or the query of `GET /api/rows`: the rows of a table that a client wants to start
/// from.
package struct RowsRequest: Sendable {
    package let schema: Name
    package let table: Name
    package let filter: ChangeFilter
    /// The columns to show; nil for all that the role may read.
    package let selection: Selection?
    /// The client's order; the columns of the primary key follow.
    package let order: [Order]
    package let limit: Int
    /// The columns of the order in the last row that the client has: JSON, by column.
    package let after: [Name: JSON]?
    /// True if the rows must be sent even when the client's cursor brings the changes: the client has none of them yet.
    package private(set) var isFresh = false

    package static let mostRows = 1000
    package static let defaultRows = 100
    /// Limit of columns in an order.
    private static let mostColumns = 8

    package struct Order: Sendable, Equatable {
        package let column: Name
        package let isDescending: Bool

        package init(column: Name, isDescending: Bool) {
            self.column = column
            self.isDescending = isDescending
        }
    }

    /// Reads an entry as a client sent it. A key with the value `null` counts as absent.
    ///
    /// - Parameter expressions: false if regular expressions are turned off.
    package init(_ entry: JSON, expressions: Bool = true) throws(SubscriptionError) {
        guard entry.kind == .object else {
            throw SubscriptionError(#"an entry of rows must be an object like {"table": "messages", "limit": 50}"#)
        }
        func stringMember(_ key: String) throws(SubscriptionError) -> String? {
            guard let value = entry[key], !value.isNull else { return nil }
            guard let text = value.string else { throw SubscriptionError("\(key) must be a string") }
            return text
        }
        let selected: [String]
        if let value = entry["select"], !value.isNull {
            guard value.kind == .array else {
                throw SubscriptionError(#"select must be a list of column names, such as ["id", "body"]"#)
            }
            selected = value.elements.compactMap(\.string)
        } else {
            selected = []
        }
        var limit = Self.defaultRows
        if let value = entry["limit"], !value.isNull {
            guard let number = value.int else { throw Self.badLimit }
            limit = number
        }
        let after = entry["after"].flatMap { $0.isNull ? nil : $0 }
        try self.init(
            schema: try stringMember("schema"), table: try stringMember("table"), filter: try stringMember("filter"),
            select: selected,
            order: try stringMember("order"), limit: limit, after: after, expressions: expressions)
        isFresh = entry["fresh"]?.bool ?? false
    }

    /// - Parameter after: a JSON object.
    package init(
        schema: String?, table: String?, filter: String?, select: [String], order: String?, limit: Int = defaultRows,
        after: JSON?, expressions: Bool = true
    ) throws(SubscriptionError) {
        guard let table, !table.isEmpty, table != "*", schema != "*" else {
            throw SubscriptionError("rows are those of one table: name it, as in \"table\": \"messages\"")
        }
        guard 1...Self.mostRows ~= limit else { throw Self.badLimit }
        self.schema = Name(schema ?? "public")
        self.table = Name(table)
        self.filter = try ChangeFilter(parsing: filter ?? "")
        if !expressions, let condition = self.filter.conditions.first(where: \.isRegularExpression) {
            throw SubscriptionError(
                "filter condition \(SubscriptionError.quoteText(condition.description)) is a regular expression, and these "
                    + "are turned off here (limits.regular_expressions); use like, ilike, eq or in")
        }
        selection = Selection(select)
        self.order = try Self.parseOrder(order ?? "")
        self.limit = limit
        self.after = try after.map { json throws(SubscriptionError) in try Self.parsePlace(json) }
    }

    private static let badLimit = SubscriptionError("limit must be a whole number from 1 to \(mostRows)")

    /// Parses an order such as `created_at.desc,id`.
    private static func parseOrder(_ text: String) throws(SubscriptionError) -> [Order] {
        var order: [Order] = []
        for part in text.split(separator: ",", omittingEmptySubsequences: text.isEmpty) {
            let (name, direction) = direction(of: part)
            guard let isDescending = direction, !name.isEmpty else {
                throw SubscriptionError(
                    "order \(SubscriptionError.quoteText(text)) is none; write columns with .asc or .desc behind them, such as "
                        + "created_at.desc,id.desc")
            }
            guard !order.contains(where: { $0.column == Name(String(name)) }) else {
                throw SubscriptionError("order names the column \(SubscriptionError.quoteText(String(name))) twice")
            }
            order.append(Order(column: Name(String(name)), isDescending: isDescending))
        }
        guard order.count <= mostColumns else {
            throw SubscriptionError("order has more than \(mostColumns) columns")
        }
        return order
    }

    /// - Returns: true for descending; nil if the suffix is neither `asc` nor `desc`.
    private static func direction(of part: Substring) -> (name: Substring, Bool?) {
        let part = part.drop { $0 == " " }
        guard let point = part.lastIndex(of: ".") else { return (part, false) }
        switch part[part.index(after: point)...] {
        case "asc": return (part[..<point], false)
        case "desc": return (part[..<point], true)
        default: return (part, nil)
        }
    }

    private static func parsePlace(_ json: JSON) throws(SubscriptionError) -> [Name: JSON] {
        guard json.kind == .object else {
            throw SubscriptionError(
                #"after must be an object with the values of the last row, such as {"created_at": "…", "id": 7}"#)
        }
        var place: [Name: JSON] = [:]
        json.forEachMember { place[Name($0.key)] = $0.value }
        return place
    }
}

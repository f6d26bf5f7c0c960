package import Wire

/// The statement that reads the rows a client wants to start from. It runs as the client's role, so that Postgres decides
/// which rows and columns the role may read.
///
/// Its rows have three columns: the record as JSON (null if it is too large), its place as JSON (the values of the columns
/// of the order), and whether another row follows that was left out.
package struct RowsStatement: Sendable {
    package let table: Table
    package let request: RowsRequest
    /// True if a client that has a row of the result can ask for the rows after it.
    package let hasPlaces: Bool
    private let record: String
    /// The record with each value as text, which no failing cast to json can affect.
    private let textRecord: String
    /// The columns that are shown, with their types.
    private let shown: [Column]
    private let place: String
    /// The statement after the column list: from, where, order by, limit.
    private let rest: String

    /// - Parameter granted: the columns that the role may SELECT; nil for all.
    package init(_ request: RowsRequest, of table: Table, granted: Set<Name>?) throws(SubscriptionError) {
        self.table = table
        self.request = request
        let order = try Self.completeOrder(of: request, table, granted)
        hasPlaces = order.isTotal
        try Self.checkColumns(request.filter.conditions.map(\.column), "filters by", granted, table)
        try Self.checkColumns(request.selection?.columns ?? [], "selects", granted, table)
        // Refuses whatever a subscription would be refused for, in the same words.
        _ = try request.filter.bind(to: table)
        shown = table.columns.filter { column in
            (request.selection?.includes(column) ?? true) && (granted?.contains(column.name) ?? true)
        }
        var conditions = request.filter.conditions.map {
            "(" + SQLCondition.text($0, on: Self.columnOperand($0.column)) + ")"
        }
        if let after = request.after {
            guard order.isTotal else {
                throw SubscriptionError(
                    "after needs a table with a primary key that you may read; leave it out, and filter instead")
            }
            conditions.append(try RowsPlace(after, of: order, in: table).condition)
        }
        func rowObject(_ columns: [Name], _ value: (Name) -> String = Self.columnOperand) -> String {
            let list = columns.map(value).joined(separator: ", ")
            // A column with the row alias's own name would be taken for the row.
            var row = "c"
            while columns.contains(Name(row)) { row += "c" }
            return columns.isEmpty ? "'{}'::json" : "row_to_json((select \(row) from (select \(list)) as \(row)))"
        }
        record = rowObject(shown.map(\.name))
        textRecord = rowObject(shown.map(\.name)) { "\(Self.columnOperand($0))::text as \(SQLText.identifier($0))" }
        place = rowObject(order.columns.map(\.column))
        rest =
            " from \(SQLText.name(of: table)) as t"
            + (conditions.isEmpty ? "" : " where " + conditions.joined(separator: " and "))
            + (order.columns.isEmpty ? "" : " order by " + order.columns.map(Self.orderTerm).joined(separator: ", "))
            + " limit \(request.limit + 1)"
    }

    /// The statement, or several of which the last returns the rows.
    package struct Script: Equatable, Sendable {
        package let sql: String
        /// Number of results with rows.
        package let tables: Int
    }

    /// - Parameters:
    ///   - isUTF8: true if every text of the database can be sent.
    ///   - bytes: approximate limit of the bytes read; the row that reaches it is the last.
    ///   - isCareful: sends a value whose cast to json fails, as PostGIS' does for curves, as its text. Costs a function
    ///     call per value.
    ///   - role: the client's role, as which the statement runs.
    package func makeScript(isUTF8: Bool, bytes: Int, isCareful: Bool = false, as role: Name) -> Script {
        guard !isUTF8 || isCareful else { return Script(sql: sql(of: record, bytes: bytes), tables: 1) }
        // The client's role may call none of the hub's functions. So it passes the rows it read to the hub's role, which
        // makes them sendable.
        let types = shown.enumerated().map { place, column in
            "(\(SQLText.literal(column.name.text)), \(SQLText.literal(column.sqlType.text)), \(place))"
        }
        var made = "e ->> 0"
        if isCareful, !types.isEmpty {
            made =
                "(select json_object_agg(c.name, roost.text_as_json((e ->> 0)::json ->> c.name, c.type) order by c.place) "
                + "from (values \(types.joined(separator: ", "))) as c (name, type, place))::text"
        }
        let statements = [
            "select set_config('roost.read', coalesce((select json_agg(json_build_array(record, place, more) order by number) from ("
                + sql(of: isCareful ? textRecord : record, bytes: bytes) + ") as q)::text, '[]'), true)",
            "set local role none",
            "select case when e ->> 0 is not null then roost.legible(\(made)) end, roost.legible(e ->> 1), (e ->> 2)::boolean "
                + "from json_array_elements(current_setting('roost.read')::json) with ordinality as s (e, n) order by n",
            "set local role \(SQLText.identifier(role))",
        ]
        return Script(sql: statements.joined(separator: ";\n"), tables: 2)
    }

    private func sql(of record: String, bytes: Int) -> String {
        // A row that is too large for a message has only its place.
        "select case when octet_length(record) <= \(ChangeLimits.dataBytes) then record end as record, place, "
            + "number < count as more, number "
            + "from (select record, place, row_number() over () as number, count(*) over () as count, "
            + "coalesce(sum(least(octet_length(record), \(ChangeLimits.dataBytes))) "
            + "over (rows between unbounded preceding and 1 preceding), 0) as before "
            + "from (select \(record)::text as record, \(place)::text as place\(rest)) as r) as s "
            + "where number <= \(request.limit) and before < \(bytes)"
    }

    private static func columnOperand(_ column: Name) -> String { "t." + SQLText.identifier(column) }

    private static func orderTerm(_ order: RowsRequest.Order) -> String {
        columnOperand(order.column) + (order.isDescending ? " desc" : "")
    }

    /// The requested order, then any missing columns of the primary key, so that no two rows have the same place.
    private static func completeOrder(
        of request: RowsRequest, _ table: Table, _ granted: Set<Name>?
    ) throws(SubscriptionError) -> RowsOrder {
        try checkColumns(request.order.map(\.column), "orders by", granted, table)
        let key = table.columns.filter(\.isPrimaryKey).map(\.name)
        let isTotal = !key.isEmpty && key.allSatisfy { granted?.contains($0) ?? true }
        var columns = request.order
        let isDescending = columns.last?.isDescending ?? false
        for name in key where isTotal && !columns.contains(where: { $0.column == name }) {
            columns.append(RowsRequest.Order(column: name, isDescending: isDescending))
        }
        return RowsOrder(columns: columns, isTotal: isTotal)
    }

    /// Filtering or ordering by a hidden column would disclose its values.
    private static func checkColumns(
        _ names: [Name], _ verb: String, _ granted: Set<Name>?, _ table: Table
    ) throws(SubscriptionError) {
        for name in names {
            guard table.column(name) != nil else { throw .missingColumn(name, in: table) }
            guard let granted, !granted.contains(name) else { continue }
            throw SubscriptionError(
                "permission denied: it \(verb) the column \(SubscriptionError.quoteText(name.text)), which you may not read"
            )
        }
    }
}

/// An order of a table's rows.
struct RowsOrder {
    let columns: [RowsRequest.Order]
    /// True if no two rows have the same place.
    let isTotal: Bool
}

/// The condition for rows that follow a given row in an order.
struct RowsPlace {
    let condition: String

    /// Sorts as Postgres does: NULL is last in an ascending order, and first in a descending one.
    init(_ after: [Name: JSON], of order: RowsOrder, in table: Table) throws(SubscriptionError) {
        var values: [(operand: String, value: String?, isDescending: Bool, isKey: Bool)] = []
        for term in order.columns {
            guard let json = after[term.column] else {
                throw SubscriptionError(
                    "after lacks the column \(SubscriptionError.quoteText(term.column.text)), which the rows are ordered by"
                )
            }
            values.append(
                (
                    "t." + SQLText.identifier(term.column), try Self.valueLiteral(json, term.column), term.isDescending,
                    table.column(term.column)?.isPrimaryKey ?? false
                ))
        }
        let isPlain = values.allSatisfy { $0.value != nil && $0.isDescending == values[0].isDescending }
        if isPlain, values[0].isDescending || values.allSatisfy(\.isKey) {
            // An index can serve a row comparison. In a descending order the comparison excludes NULLs, which came earlier.
            let operands = values.map(\.operand).joined(separator: ", ")
            let literals = values.compactMap(\.value).joined(separator: ", ")
            condition = "((\(operands)) \(values[0].isDescending ? "<" : ">") (\(literals)))"
            return
        }
        var parts: [String] = []
        var equal: [String] = []
        for (operand, value, isDescending, isKey) in values {
            let behind: String? =
                switch (value, isDescending) {
                case (let value?, false) where isKey: "\(operand) > \(value)"
                case (let value?, false): "(\(operand) > \(value) or \(operand) is null)"
                case (let value?, true): "\(operand) < \(value)"
                case (nil, true): "\(operand) is not null"
                case (nil, false): nil
                }
            if let behind { parts.append((equal + [behind]).joined(separator: " and ")) }
            equal.append(value.map { "\(operand) = \($0)" } ?? "\(operand) is null")
        }
        condition = parts.isEmpty ? "false" : "(" + parts.map { "(\($0))" }.joined(separator: " or ") + ")"
    }

    /// - Returns: nil for null.
    private static func valueLiteral(_ json: JSON, _ column: Name) throws(SubscriptionError) -> String? {
        switch json.kind {
        case .null: return nil
        case .string:
            guard let text = json.string, text.utf8.count <= ChangeLimits.valueBytes, !text.utf8.contains(0) else {
                break
            }
            return SQLText.literal(text)
        case .number, .bool:
            guard json.bytes.count <= ChangeLimits.valueBytes else { break }
            return SQLText.literal(String(decoding: json.bytes, as: UTF8.self))
        default: break
        }
        throw SubscriptionError(
            "after has a value for \(SubscriptionError.quoteText(column.text)) that rows cannot be read behind")
    }
}

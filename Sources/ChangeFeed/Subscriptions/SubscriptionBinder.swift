import Hub
import Matching
import Postgres
import Wire

/// Turns a client's entries into filters bound to tables, asking Postgres when the hub cannot be sure.
struct SubscriptionBinder {
    typealias Ask = (String) throws -> [[String?]]

    let catalog: Catalog
    /// Nil if Postgres cannot be asked now.
    let ask: Ask?
    /// Asks for the meaning of filters' values. A client chose them, so this does not use the feed's session.
    var validate: Ask?
    /// True if a filter was given up recently because it took too long to decide.
    var refuses: (ChangeFilter, Table) -> Bool = { _, _ in false }

    /// Limit of asking about a filter's values one by one; the feed waits.
    private static let patience = Duration.seconds(1)

    enum Failure: Error {
        /// Postgres must be asked and cannot be now.
        case mustAsk
        /// The tables, as the catalog describes them, do not allow it.
        case refused(String)
        /// No table would allow it.
        case invalid(String)
        /// The filter was given up because of its cost.
        case costly(String)
    }

    /// Binds every sound binding: a faulty one does not silence others of its channel.
    func bindDefinition(_ definition: SubscriptionDefinition) throws(Failure) -> BoundDefinition {
        guard let access = catalog.access(of: definition.role) else { throw .mustAsk }
        guard access.exists else {
            throw .refused(
                "Unable to subscribe to changes as \(definition.role): the database has no such role; correct the claim "
                    + "`role` of the token, or create the role.")
        }
        var bound = BoundDefinition()
        for (binding, id) in zip(definition.bindings, definition.ids) {
            switch binding.parameters {
            case .failure(let error):
                bound.addError(error.message)
            case .success(let parameters):
                let binder = { (table: Table) throws(Failure) -> BoundFilter in
                    let granted = try grantedColumns(definition.role, access, to: table)
                    return try makeFilter(parameters, table, granted)
                }
                do {
                    bound.bindings.append(try bindParameters(parameters, id, binder))
                } catch {
                    switch error {
                    case .mustAsk: throw error
                    case .invalid(let message), .costly(let message): bound.addError(message)
                    case .refused(let message):
                        bound.addError(message)
                        bound.isRefused = true
                    }
                    continue
                }
                for table in catalog.tables where parameters.tables.includes(table) {
                    for fault in catalog.faults[table.oid] ?? [] { bound.addComplaint(fault.complaint(about: table)) }
                }
            }
        }
        return bound
    }

    /// The message to clients about a binding whose filter is no longer served.
    static func endNotice(_ filter: ChangeFilter, _ tables: TablePattern, because reason: String) -> String {
        let table = "\(tables.schema ?? "*").\(tables.name ?? "*")"
        return
            "The filter \(SubscriptionError.quoteText(filter.description)) on changes of \(table) \(reason), and is not "
            + "served any more; changes that it would have shown since are missing. Subscribe with a simpler filter, "
            + "and load your data again."
    }

    /// The message to clients that have too many filters.
    static func endNotice(_ count: Int) -> String {
        "\(count == 1 ? "A filter" : "\(count) filters") of this channel that only Postgres can decide (ilike, match, "
            + "imatch, or on text by order) \(count == 1 ? "is" : "are") not served any more, because there are too "
            + "many such filters (limits.undecided_filters) and this channel has the most; changes that they would "
            + "have shown since are missing. Subscribe with fewer, or with eq or in, and load your data again."
    }

    private func bindParameters(
        _ parameters: ChangeParameters, _ id: Int, _ filter: (Table) throws(Failure) -> BoundFilter
    ) throws(Failure) -> BoundBinding {
        guard parameters.tables.isWildcard else {
            let table = try findTable(parameters.tables)
            return BoundBinding(
                id: id, events: parameters.events, selection: parameters.selection, filter: try filter(table))
        }
        var filters: [BoundFilter] = []
        // Tables or columns that the role may not read are left out row by row.
        if parameters.filter.conditions.isEmpty {
            return BoundBinding(id: id, events: parameters.events, everyRowOf: parameters.tables)
        }
        for table in catalog.tables where parameters.tables.includes(table) {
            // A wildcard covers the tables that it matches and that the role may read.
            do { filters.append(try filter(table)) } catch .refused {}
        }
        return BoundBinding(id: id, events: parameters.events, tables: parameters.tables, filters: filters)
    }

    private func findTable(_ pattern: TablePattern) throws(Failure) -> Table {
        guard let schema = pattern.schema, let name = pattern.name else {
            throw .refused("a table must be named")
        }
        if let table = catalog.table(schema: schema, name: name) { return table }
        guard let ask else { throw .mustAsk }
        let found: [[String?]]
        do {
            found = try ask(Self.lookUp(schema, name))
        } catch {
            throw .mustAsk
        }
        throw .refused(
            "Unable to subscribe to changes of \(schema).\(name): " + refusalReason(found.first, schema, name))
    }

    /// The reason why a table that is not watched is not served, and the remedy.
    ///
    /// - Parameter row: the result of `lookUp`; nil if nothing has the name.
    private func refusalReason(_ row: [String?]?, _ schema: Name, _ name: Name) -> String {
        guard let row, row.count == 4, let kind = row[0] else { return "no such table; check the schema and the name." }
        if row[1] == "t" { return "it is a system table, which cannot be watched." }
        if let kind = RelationKind.describeKind(kind) {
            return "it is \(kind), which has no changes of its own; subscribe to the table that its rows are "
                + "written to."
        }
        if let rootSchema = row[2].map({ Name($0) }), let root = row[3].map({ Name($0) }) {
            let named = SQLText.qualifiedName(rootSchema, root)
            let isWatched = catalog.table(schema: rootSchema, name: root) != nil
            return "it is a partition of \(named), whose changes are told as that table's; subscribe to \(named)"
                + (isWatched ? "." : ", and run: roost watch " + ShellText.quoteArgument(named))
        }
        return "the table is not watched; run: roost watch "
            + ShellText.quoteArgument(SQLText.qualifiedName(schema, name))
    }

    private static func lookUp(_ schema: Name, _ name: Name) -> String {
        """
        select c.relkind, n.nspname in ('pg_catalog', 'information_schema', 'roost') or n.nspname like 'pg\\_toast%', \
        case when c.relispartition then o.nspname end, case when c.relispartition then r.relname end \
        from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace \
        left join pg_catalog.pg_class r on r.oid = pg_catalog.pg_partition_root(c.oid) \
        left join pg_catalog.pg_namespace o on o.oid = r.relnamespace \
        where n.nspname = \(SQLText.literal(schema.text)) and c.relname = \(SQLText.literal(name.text))
        """
    }

    /// - Returns: the columns that the role may read; nil for all.
    private func grantedColumns(_ role: Name, _ access: RoleAccess, to table: Table) throws(Failure) -> Set<Name>? {
        let name = SQLText.qualifiedName(table.schema, table.name)
        guard let tableAccess = access.table(table.oid) else {
            throw .refused(
                "Unable to subscribe to changes of \(table.schema).\(table.name) as \(role): permission denied; run in psql: "
                    + "grant select on \(name) to \(SQLText.identifier(role));")
        }
        guard !tableAccess.isRestricted || access.isAssumable else {
            throw .refused(
                "Unable to subscribe to changes of \(table.schema).\(table.name) as \(role): the hub may not act as that role "
                    + "to ask its policies; grant it to the hub's own role, as `roost doctor` says.")
        }
        return tableAccess.columns
    }

    private static func checkColumns(_ names: some Sequence<Name>, granted: Set<Name>?, in table: Table) throws(Failure)
    {
        guard let granted else { return }
        for name in names where table.column(name) != nil && !granted.contains(name) {
            throw .refused(
                "Unable to subscribe to changes of \(table.schema).\(table.name): permission denied for column \(name)."
            )
        }
    }

    private func makeFilter(
        _ parameters: ChangeParameters, _ table: Table, _ granted: Set<Name>?
    ) throws(Failure) -> BoundFilter {
        guard !refuses(parameters.filter, table) else {
            throw .costly(
                Self.endNotice(parameters.filter, parameters.tables, because: "took too long to decide a while ago"))
        }
        // A filter on a hidden column would disclose its values.
        try Self.checkColumns(parameters.filter.conditions.map(\.column), granted: granted, in: table)
        try Self.checkColumns(parameters.selection?.columns ?? [], granted: granted, in: table)
        do {
            try parameters.selection?.checkColumns(in: table)
            let draft = try parameters.filter.bind(to: table)
            return try draft.makeFilter(answers: try answers(to: draft.queries))
        } catch let error as SubscriptionError {
            throw .refused("Unable to subscribe to changes of \(table.schema).\(table.name): \(error.message)")
        } catch let error as Failure {
            throw error
        } catch {
            throw .mustAsk
        }
    }

    private func answers(to queries: [ValidationQuery]) throws -> [JSON] {
        guard !queries.isEmpty else { return [] }
        guard let ask = validate ?? ask else { throw Failure.mustAsk }
        do {
            return try ask(ValidationQuery.statement(for: queries)).map { try Self.parseRow($0) }
        } catch let error as PostgresError where error.sqlState == SQLState.queryCanceled {
            throw queries[0].refusalError(error.message)
        } catch let error as PostgresError where error.kind == .server {
            // The statement failed as a whole: one by one, the queries show which is faulty.
            let deadline = ContinuousClock.now + Self.patience
            return try queries.map { query in
                guard ContinuousClock.now < deadline else { throw query.refusalError("it takes too long to read") }
                do {
                    return try Self.parseRow(try ask(ValidationQuery.statement(for: [query])).first ?? [])
                } catch let error as PostgresError where error.kind == .server {
                    throw query.refusalError(error.message)
                }
            }
        }
    }

    private static func parseRow(_ row: [String?]) throws -> JSON {
        try JSON(parsing: Array((row.first.flatMap { $0 } ?? "null").utf8))
    }
}

/// The result of binding a definition.
struct BoundDefinition {
    var bindings: [BoundBinding] = []
    private(set) var complaints: [SubscriptionComplaint] = []
    /// True if the tables, as the catalog describes them, do not allow one of the bindings.
    var isRefused = false

    mutating func addError(_ message: String) { addComplaint(SubscriptionComplaint(message, isError: true)) }

    mutating func addComplaint(_ complaint: SubscriptionComplaint?) {
        if let complaint, !complaints.contains(complaint) { complaints.append(complaint) }
    }

    /// Removes bindings that were ended for the cost of their filters, and adds their messages.
    mutating func leaveOut(_ ended: [Int: String]) {
        bindings.removeAll { ended[$0.id] != nil }
        for message in ended.values.sorted() { addError(message) }
    }

    /// The outcome to report.
    var outcome: ChangeSubscriptionOutcome {
        if complaints.isEmpty { return .live }
        return bindings.isEmpty ? .failed(complaints.map(\.message).joined(separator: " ")) : .partly(complaints)
    }
}

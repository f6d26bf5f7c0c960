import Hub
import Wire

/// Turns what a client wrote into filters that are bound to tables, asking Postgres where the hub cannot be sure.
struct SubscriptionBinder {
    typealias Ask = (String) throws -> [[String?]]

    /// Supabase's role with BYPASSRLS.
    static let roleBeyondPolicies = "service_role"

    let catalog: Catalog
    /// Nil where Postgres cannot be asked now.
    let ask: Ask?

    enum Failure: Error {
        /// Postgres must be asked and cannot be.
        case mustAsk
        /// The tables do not allow it, as the catalog describes them.
        case refused(String)
        /// No table would allow it.
        case invalid(String)
    }

    func bind(_ definition: SubscriptionDefinition, trustsRowSecurity: Bool) throws(Failure) -> [BoundBinding] {
        var bound: [BoundBinding] = []
        for (binding, id) in zip(definition.bindings, definition.ids) {
            switch binding.parameters {
            case .failure(let error):
                throw .invalid(error.message)
            case .success(let parameters):
                let binder = { (table: Table) throws(Failure) -> BoundFilter in
                    try admit(definition.role, to: table, trustsRowSecurity)
                    return try filter(parameters, table)
                }
                bound.append(try bind(parameters, id, binder))
            }
        }
        return bound
    }

    private func bind(
        _ parameters: ChangeParameters, _ id: Int, _ filter: (Table) throws(Failure) -> BoundFilter
    ) throws(Failure) -> BoundBinding {
        guard parameters.tables.isWildcard else {
            let table = try table(parameters.tables)
            return BoundBinding(
                id: id, events: parameters.events, selection: parameters.selection, filter: try filter(table))
        }
        var filters: [BoundFilter] = []
        for table in catalog.tables where parameters.tables.includes(table) {
            do {
                filters.append(try filter(table))
            } catch .refused(let message) {
                // A wildcard is about the tables that it fits.
                if parameters.filter.conditions.isEmpty { throw .refused(message) }
            }
        }
        if parameters.filter.conditions.isEmpty {
            return BoundBinding(id: id, events: parameters.events, everyRowOf: parameters.tables)
        }
        return BoundBinding(id: id, events: parameters.events, tables: parameters.tables, filters: filters)
    }

    private func table(_ pattern: TablePattern) throws(Failure) -> Table {
        guard let schema = pattern.schema, let name = pattern.name else { throw .refused("a table must be named") }
        if let table = catalog.table(schema: schema, name: name) { return table }
        guard let ask else { throw .mustAsk }
        let exists: Bool
        do {
            exists = try !ask(Self.lookUp(schema, name)).isEmpty
        } catch {
            throw .mustAsk
        }
        guard exists else {
            throw .refused(
                "Unable to subscribe to changes of \(schema).\(name): no such table; check the schema and the name.")
        }
        throw .refused(
            "Unable to subscribe to changes of \(schema).\(name): the table is not watched; run: roost watch "
                + ShellText.argument(SQLText.qualified(schema, name)))
    }

    private static func lookUp(_ schema: String, _ name: String) -> String {
        """
        select 1 from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace \
        where n.nspname = \(SQLText.literal(schema)) and c.relname = \(SQLText.literal(name)) and c.relkind in ('r', 'p')
        """
    }

    /// Until policies are evaluated here, a table that has some is for the role that bypasses them.
    private func admit(_ role: String, to table: Table, _ trustsRowSecurity: Bool) throws(Failure) {
        guard table.hasRowSecurity, role != Self.roleBeyondPolicies, !trustsRowSecurity else { return }
        throw .refused(
            "Unable to subscribe to changes of \(table.schema).\(table.name) as \(role): it has row level security, which this "
                + "version does not evaluate; use service_role, or set feed.trust_row_security.")
    }

    private func filter(_ parameters: ChangeParameters, _ table: Table) throws(Failure) -> BoundFilter {
        do {
            try parameters.selection?.check(in: table)
            let draft = try parameters.filter.bind(to: table)
            return try draft.bound(answers: try answers(to: draft.queries))
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
        guard let ask else { throw Failure.mustAsk }
        do {
            return try ask(ValidationQuery.statement(for: queries)).map { try Self.json($0) }
        } catch let error as PostgresError where error.kind == .server {
            // Faulty as a whole: one by one they say which.
            return try queries.map { query in
                do {
                    return try Self.json(try ask(ValidationQuery.statement(for: [query])).first ?? [])
                } catch let error as PostgresError where error.kind == .server {
                    throw query.refusal(error.message)
                }
            }
        }
    }

    private static func json(_ row: [String?]) throws -> JSON {
        try JSON(parsing: Array((row.first.flatMap { $0 } ?? "null").utf8))
    }
}

import Postgres

/// Sets up clients in a database: the roles that their tokens name, the hub's right to become them, and the right to
/// read tables. Supabase's databases have the roles, others do not.
package enum ClientRoles {
    /// The tables that `roost init` makes readable, for which roles and which hub.
    package struct Request: Sendable {
        /// In the syntax of `regclass`.
        package var tables: [String]
        /// The role that the hub connects as; nil for the current role.
        package var hub: String?
        /// Lets visitors (`anon`) read the tables, too.
        package var includesVisitors: Bool

        package init(tables: [String] = [], hub: String? = nil, includesVisitors: Bool = false) {
            self.tables = tables
            self.hub = hub
            self.includesVisitors = includesVisitors
        }

        /// `service_role` is for backends and `roost tail`.
        var readers: [String] { (includesVisitors ? ["anon"] : []) + ["authenticated", "service_role"] }
    }

    /// The setup that a database lacks.
    package struct Plan: Sendable, Equatable {
        /// In order, without semicolons; empty if nothing is missing.
        package var statements: [String] = []
        /// Remarks, in sentences.
        package var notes: [String] = []
        /// The reason why the current role may not run the statements, a clause; nil if there is none.
        package var obstacle: String?
        /// The current role.
        package var user: String

        /// A script for psql.
        package var script: String { statements.map { $0 + ";\n" }.joined() }
    }

    /// Determines the missing setup without changing anything.
    /// - Throws: `AdminError`.
    package static func plan(_ request: Request, conninfo: String) throws -> Plan {
        try runCommand("look at the roles") { try plan(request, AdminSession.openConnection(conninfo)) }
    }

    /// Completes the setup in one transaction, or changes nothing. Safe to repeat.
    /// - Returns: the executed plan.
    /// - Throws: `AdminError`; if this role lacks the rights, with the statements for an administrator to run.
    package static func createRoles(_ request: Request, conninfo: String) throws -> Plan {
        try runCommand("make the clients' roles") {
            let connection = try AdminSession.openConnection(conninfo)
            let plan = try plan(request, connection)
            guard !plan.statements.isEmpty else { return plan }
            if let obstacle = plan.obstacle { throw missingRightsError(plan, obstacle) }
            do {
                // The whole script is one simple query: a failure aborts the transaction.
                try connection.runScript("begin;\n\(plan.script)commit")
            } catch let error as PostgresError where error.sqlState == SQLState.insufficientPrivilege {
                throw missingRightsError(plan, error.message)
            }
            return plan
        }
    }

    private static func missingRightsError(_ plan: Plan, _ reason: String) -> AdminError {
        AdminError(
            "\(plan.user) may not do this (\(reason)). Have an administrator of the database run these statements, and then "
                + "run `roost doctor`:\n\n\(plan.script)")
    }

    /// The privilege in `pg_has_role` that allows becoming a role.
    static func membershipPrivilege(_ connection: PostgresConnection) -> String {
        connection.serverVersion >= 160_000 ? "SET" : "MEMBER"
    }

    private static func plan(_ request: Request, _ connection: PostgresConnection) throws -> Plan {
        let who = try connection.query(ClientRolesSQL.administrator, [request.hub ?? ""])
        guard who.flag(0, 4), let user = who.text(0, 0), let hub = who.text(0, 5) else {
            throw AdminError(
                "There is no role \(request.hub ?? "of this session"); --hub-role names the role that the hub connects as."
            )
        }
        var plan = Plan(user: user)
        try addRoles(to: &plan, for: request, hub, hubIsSuperuser: who.flag(0, 6), who, connection)
        try addRights(to: &plan, for: request, connection)
        return plan
    }

    private static func addRoles(
        to plan: inout Plan, for request: Request, _ hub: String, hubIsSuperuser: Bool, _ who: QueryResult,
        _ connection: PostgresConnection
    ) throws {
        let (isSuperuser, makesRoles, bypasses) = (who.flag(0, 1), who.flag(0, 2), who.flag(0, 3))
        let roles = try connection.query(
            ClientRolesSQL.clientRoles, [request.hub ?? "", membershipPrivilege(connection)])
        var granted: [String] = []
        for row in 0..<roles.count {
            let name = roles.text(row, 0) ?? ""
            let isService = name == "service_role"
            if !roles.flag(row, 1) {
                plan.statements.append("create role \(name) nologin noinherit\(isService ? " bypassrls" : "")")
                if !isSuperuser, !makesRoles { plan.obstacle = "it lacks CREATEROLE" }
                // Before Postgres 16 only superusers can create such a role, since then any role with CREATEROLE and
                // BYPASSRLS.
                if isService, !isSuperuser, plan.obstacle == nil, connection.serverVersion < 160_000 || !bypasses {
                    plan.obstacle =
                        "only a superuser can create a role with BYPASSRLS, which service_role has at Supabase"
                }
            } else if isService, !roles.flag(row, 2) {
                plan.notes.append(
                    "service_role has no BYPASSRLS here, unlike at Supabase: row level security applies to backends as "
                        + "well."
                )
            }
            if !hubIsSuperuser, !roles.flag(row, 3) { granted.append(name) }
        }
        if !granted.isEmpty { plan.statements.append("grant \(granted.joined(separator: ", ")) to \(hub)") }
    }

    private static func addRights(
        to plan: inout Plan, for request: Request, _ connection: PostgresConnection
    ) throws {
        var schemas: [String: [String]] = [:]
        var grants: [String] = []
        for table in request.tables {
            let state = try readingState(of: table, for: request.readers, connection)
            if let obstacle = state.obstacle, plan.obstacle == nil { plan.obstacle = obstacle }
            for role in state.outside where schemas[state.schema]?.contains(role) != true {
                schemas[state.schema, default: []].append(role)
            }
            let grant = "grant select on \(state.name) to \(state.blind.joined(separator: ", "))"
            if !state.blind.isEmpty, !grants.contains(grant) { grants.append(grant) }
            if state.isOpen {
                plan.notes.append(
                    "\(state.name) has no row level security: every role that may read it reads all rows and receives "
                        + "all changes."
                )
            }
        }
        plan.statements +=
            schemas.sorted { $0.key < $1.key }.map {
                "grant usage on schema \($0.key) to \($0.value.joined(separator: ", "))"
            } + grants
    }

    /// The rights that roles lack to read a table.
    private struct Reading {
        var schema: String
        /// Schema and name, quoted if necessary.
        var name: String
        /// Roles without USAGE on the schema.
        var outside: [String] = []
        /// Roles that cannot read any column. Rights on some columns stay as they are, as they were chosen on purpose.
        var blind: [String] = []
        /// True if the table has no row level security.
        var isOpen = false
        /// The reason why the table cannot be examined.
        var obstacle: String?
    }

    private static func readingState(
        of table: String, for readers: [String], _ connection: PostgresConnection
    ) throws -> Reading {
        do {
            let named = try NamedTable(table, on: connection)
            var found = Reading(schema: "", name: named.name)
            for role in readers {
                let state = try connection.query(ClientRolesSQL.tableReading, [named.oid, role])
                found.schema = state.text(0, 0) ?? ""
                if !state.flag(0, 1) { found.outside.append(role) }
                if !state.flag(0, 2) { found.blind.append(role) }
                found.isOpen = !state.flag(0, 3)
            }
            return found
        } catch let error as PostgresError where error.sqlState == SQLState.insufficientPrivilege {
            // This role may not use the schema; an administrator may.
            let name = try connection.query(ClientRolesSQL.tableName, [table])
            return Reading(
                schema: name.text(0, 0) ?? "", name: name.text(0, 1) ?? "", outside: readers, blind: readers,
                obstacle: error.message)
        }
    }
}

/// Queries about clients' roles for `roost init` and `roost doctor`.
enum ClientRolesSQL: String, NamedStatement {
    case administrator, clientRoles, tableReading, tableName, ownRoles, unreadableTables
    static let file = StatementFile("ClientRoles.sql")
}

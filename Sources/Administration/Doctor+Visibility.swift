import ChangeFeed
import Postgres

/// Checks of row level security, channels in SQL and scopes.
extension Doctor {
    static func checkRealtime(_ connection: PostgresConnection) throws -> [Finding] {
        let state = try connection.query(DoctorSQL.realtimeState)
        let role = state.text(0, 2) ?? "this role"
        guard state.flag(0, 0) else {
            return [
                Finding(
                    .warning, "realtime",
                    "There is no realtime.messages, so SQL cannot send to channels; run `roost migrate` as a role that may "
                        + "create a schema.")
            ]
        }
        return [triggerFinding(state, role)] + (try policiesOfAnyTopic(connection))
    }

    private static func triggerFinding(_ state: QueryResult, _ role: String) -> Finding {
        if state.flag(0, 1) { return Finding(.good, "realtime", "What SQL sends to channels reaches the hub.") }
        if let disabled = state.text(0, 6) {
            return Finding(
                .warning, "realtime",
                "realtime.messages has roost's trigger, but it is disabled, so what SQL sends reaches nobody; have its owner run "
                    + "`alter table realtime.messages enable trigger \(disabled)`.")
        }
        return Finding(
            .warning, "realtime",
            "realtime.messages lacks roost's trigger, so what SQL sends reaches nobody; "
                + triggerRemedy(for: role, mayCreate: state.flag(0, 4), isLocked: state.flag(0, 5)))
    }

    /// On Supabase's platform `grant trigger` by `postgres` succeeds without any effect (changelog
    /// "realtime-schema-locked-down-against-modification", supabase/realtime PR 1993), so it is no remedy there.
    private static func triggerRemedy(for role: String, mayCreate: Bool, isLocked: Bool) -> String {
        if mayCreate { return "run `roost migrate`." }
        let grant = "run `grant trigger on realtime.messages to \(role)`, then run `roost migrate`."
        guard isLocked else { return "have its owner \(grant)" }
        return
            "have a superuser (supabase_admin, if you run Supabase yourself) \(grant) On Supabase's platform nobody can, and as postgres "
            + "it changes nothing without a word: send over HTTP there (POST /api/broadcast), or from SQL by pg_notify (docs/notify.md); "
            + "row changes, private channels and replay do not need the trigger."
    }

    /// Clients and `realtime.send` always set both topics alike; an INSERT by SQL need not.
    private static func policiesOfAnyTopic(_ connection: PostgresConnection) throws -> [Finding] {
        let rows = try connection.query(DoctorSQL.policiesOfAnyTopic)
        return (0..<rows.count).map { row in
            let canLogIn = rows.flag(row, 1)
            return Finding(
                canLogIn ? .warning : .good, "realtime",
                "The policy \(rows.text(row, 0) ?? "") of realtime.messages asks realtime.topic() on INSERT and not "
                    + "the row's topic, so whoever runs SQL as one of its roles may write to every channel"
                    + (canLogIn ? ", and one of them may log in" : "")
                    + "; add `and topic = realtime.topic()` to its check.")
        }
    }

    static func checkPolicies(_ connection: PostgresConnection) throws -> [Finding] {
        let tables = try CatalogReader.tables(from: connection).filter(\.hasRowSecurity)
        let oids = "{" + tables.map { String($0.oid) }.joined(separator: ",") + "}"
        let rows = try connection.query(DoctorSQL.tablesWithoutPolicy, [oids])
        let missing = (0..<rows.count).compactMap { rows.text($0, 0) }.map {
            Finding(
                .warning, "policies",
                "\($0) has row level security and no policy for SELECT, so only roles that bypass it get its changes; "
                    + "create one, or unwatch it.")
        }
        let deletions = try
            (DeletionRules.exceptionFindings(of: nil, on: connection)
            + DeletionRules.lastingDeletionFindings(on: connection))
            .map {
                Finding(.warning, "policies", $0)
            }
        return try missing + deletions
            + tables.flatMap { try failingPolicies(of: NamedTable(oid: $0.oid, on: connection), connection) }
    }

    private static func failingPolicies(of table: NamedTable, _ connection: PostgresConnection) throws -> [Finding] {
        try PolicySample(table: table, connection: connection).findFailures().map {
            Finding($0.isOfAll ? .error : .warning, "policies", $0.sentence)
        }
    }

    static func checkScopes(_ connection: PostgresConnection) throws -> [Finding] {
        let scopes = try DeclaredScope.readScopes(on: connection)
        let known = Set(scopes.map(\.oid))
        let without = try CatalogReader.tables(from: connection).filter { $0.hasRowSecurity && !known.contains($0.oid) }
        let findings = try scopes.flatMap { scope in
            guard scope.problems.isEmpty else { return problemFindings(scope) }
            guard scope.hasRowSecurity else {
                return [
                    Finding(
                        .good, "scope",
                        "\(scope.table) has no row level security: everybody sees every row, whatever its scope.")
                ]
            }
            return [try sampleFinding(scope, on: connection)]
        }
        return findings
            + without.map { table in
                Finding(
                    .good, "scope",
                    "\(table.schema).\(table.name) has no scope, so its policies are asked about each row by itself, which "
                        + "is slower; `roost watch` on it looks for one, or says why there is none.")
            }
    }

    private static func problemFindings(_ scope: DeclaredScope) -> [Finding] {
        scope.problems.map { problem in
            let remedy =
                switch problem.kind {
                case .watch where scope.isDerived, .policy where scope.isDerived:
                    "run `roost watch \(scope.table)` again"
                case .watch: "run `roost watch \(scope.table) --scope …` again"
                case .gone: "run `delete from roost.scope where relid = \(scope.oid)`, and declare it anew"
                case .policy: "run `roost watch \(scope.table) --no-scope`, or change what it reads"
                }
            return Finding(
                .warning, "scope",
                "The scope \(scope.columnNames) of \(scope.table) is not used, which costs speed only, as \(problem.text); "
                    + "\(remedy).")
        }
    }

    private static func sampleFinding(_ scope: DeclaredScope, on connection: PostgresConnection) throws -> Finding {
        switch try ScopeSample(scope: scope, connection: connection).compareVisibility() {
        case .holds(let rows, let users):
            Finding(
                .good, "scope",
                "Visibility of \(scope.table) depends on \(scope.columnNames): \(rows) rows were checked as \(users) "
                    + "users.")
        case .fails:
            Finding(
                .error, "scope",
                "Rows of \(scope.table) with the same \(scope.columnNames) differ in who sees them, so its scope is wrong and "
                    + "shows rows to users who may not see them; run `roost watch \(scope.table) --no-scope` at once.")
        case .unknown(let reason):
            Finding(
                .good, "scope",
                "Visibility of \(scope.table) is \(scope.isDerived ? "derived" : "declared") to depend on "
                    + "\(scope.columnNames); no rows could be compared, as \(reason)."
            )
        }
    }
}

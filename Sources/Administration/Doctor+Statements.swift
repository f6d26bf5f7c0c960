import ChangeFeed
import Postgres
import Stores
package import Streams

/// Checks of the database for alerts.
extension Doctor {
    /// Checks whether the audience statement fits the database, without running it, and whether its tables are watched.
    /// Never throws: failures become findings.
    ///
    /// - Parameters:
    ///   - statement: `alerts.audience`.
    ///   - tables: `alerts.tables`, each as `schema.table` or a name in `public`.
    package static func examine(audience statement: String, tables: [String], conninfo: String) -> [Finding] {
        do {
            let connection = try AdminSession.openConnection(conninfo)
            return [try checkAudience(AudienceStatement(statement), connection)]
                + (try checkAlertTables(tables, connection))
        } catch {
            return [Finding(.error, "alerts", "The check failed: \(error).")]
        }
    }

    private static func checkAudience(_ statement: AudienceStatement, _ connection: PostgresConnection) throws
        -> Finding
    {
        do {
            _ = try statement.run("[]", on: connection)
        } catch let error as PostgresError where error.kind == .server {
            return Finding(
                .error, "alerts",
                "alerts.audience does not work, so nobody is alerted (\(error.message)); correct it, or grant what it "
                    + "needs: it only reads, takes $1::jsonb, and returns the columns row and user_id.")
        }
        try connection.runScript("set row_security = off")
        do {
            try statement.plan(on: connection)
        } catch let error as PostgresError where error.kind == .server {
            return Finding(
                .warning, "alerts",
                "Row level security applies to alerts.audience (\(error.message)): users whom its policies do not show to "
                    + "the hub's role are not alerted; give the role BYPASSRLS, or a policy for all of them.")
        }
        return Finding(.good, "alerts", "alerts.audience fits the database.")
    }

    private static func checkAlertTables(_ tables: [String], _ connection: PostgresConnection) throws -> [Finding] {
        let watched = Set(try CatalogReader.tables(from: connection).map { "\($0.schema).\($0.name)" })
        return tables.filter { !watched.contains($0) && !watched.contains("public.\($0)") }.map {
            Finding(.error, "alerts", "\($0) is not watched, so nothing in it alerts anybody; run `roost watch \($0)`.")
        }
    }
}

/// Checks of `users.statement`.
extension Doctor {
    /// Checks whether the configured statement would work, without running it. Never throws: failures become findings.
    ///
    /// - Parameter statement: `users.statement`.
    package static func examine(usersStatement statement: String, conninfo: String) -> [Finding] {
        do {
            let connection = try AdminSession.openConnection(conninfo)
            return [try checkUsersStatement(statement, connection)]
        } catch {
            return [Finding(.error, "users", "The check failed: \(error).")]
        }
    }

    private static func checkUsersStatement(_ statement: String, _ connection: PostgresConnection) throws -> Finding {
        func planStatement() throws { _ = try connection.query("explain \(statement)", ["{}", "{}", "{}"]) }
        do {
            try planStatement()
        } catch let error as PostgresError where error.kind == .server {
            return Finding(
                .error, "users",
                "users.statement does not work, so nobody's status is written (\(error.message)); correct it, or grant "
                    + "what it needs.")
        }
        try connection.runScript("set row_security = off")
        do {
            try planStatement()
        } catch let error as PostgresError where error.kind == .server {
            return Finding(
                .warning, "users",
                "Row level security applies to users.statement (\(error.message)): users whom its policies do not show "
                    + "to the hub's role are skipped; give the role BYPASSRLS, or a policy for all of them.")
        }
        return Finding(.good, "users", "users.statement fits the database.")
    }
}

/// Checks of `receipts.statement`.
extension Doctor {
    /// Checks whether the configured statement would work, without running it, and whether its tables are watched.
    /// Never throws: failures become findings.
    ///
    /// - Parameters:
    ///   - statement: `receipts.statement`.
    ///   - tables: `receipts.tables`.
    package static func examine(
        receiptsStatement statement: String, tables: [String], conninfo: String
    ) -> [Finding] {
        do {
            let connection = try AdminSession.openConnection(conninfo)
            return [try checkReceiptsStatement(statement, connection)] + (try checkReceiptTables(tables, connection))
        } catch {
            return [Finding(.error, "receipts", "The check failed: \(error).")]
        }
    }

    private static func checkReceiptsStatement(_ statement: String, _ connection: PostgresConnection) throws -> Finding
    {
        do {
            _ = try connection.query("explain \(statement)", ["{}", "{}", "{}", "{}", "{}"])
        } catch let error as PostgresError where error.kind == .server {
            return Finding(
                .error, "receipts",
                "receipts.statement does not work, so nobody is told who received what (\(error.message)); correct it, or grant "
                    + "what it needs: it takes $1::text[], $2::text[], $3::jsonb[], $4::timestamptz[] and $5::text[].")
        }
        return Finding(.good, "receipts", "receipts.statement fits the database.")
    }

    private static func checkReceiptTables(_ tables: [String], _ connection: PostgresConnection) throws -> [Finding] {
        let watched = Set(try CatalogReader.tables(from: connection).map { "\($0.schema).\($0.name)" })
        return tables.filter { !watched.contains($0) }.map {
            Finding(.error, "receipts", "\($0) is not watched, so nobody receives its rows; run `roost watch \($0)`.")
        }
    }
}

/// Checks of `streams.on_close`.
extension Doctor {
    /// Checks whether each statement of `streams.on_close` fits the database and may be run by its role, or else by
    /// `service_role`, with whose token most backends close streams. Plans the statements without running them. Never
    /// throws: failures become findings.
    package static func examine(closeRules rules: [CloseRule], conninfo: String) -> [Finding] {
        do {
            let connection = try AdminSession.openConnection(conninfo)
            return try rules.map { try examineRule($0, connection) }
        } catch {
            return [Finding(.error, "streams", "The check of streams.on_close failed: \(error).")]
        }
    }

    private static func examineRule(_ rule: CloseRule, _ connection: PostgresConnection) throws -> Finding {
        do {
            try rule.checkStatement(as: nil, on: connection)
        } catch let error as PostgresError where error.kind == .server {
            return Finding(
                .error, "streams",
                "\(rule.setting) does not work, so these ends are refused (\(error.message)); correct it: it is one statement "
                    + "that takes $1 to $5 and ends with RETURNING.")
        }
        do {
            try rule.checkStatement(as: rule.role ?? "service_role", on: connection)
        } catch let error as PostgresError where error.kind == .server {
            guard let role = rule.role else {
                return Finding(
                    .warning, "streams",
                    "service_role may not run \(rule.setting) (\(error.message)): closes with its tokens are refused; grant "
                        + "what it needs, unless your backend closes with another role.")
            }
            return Finding(
                .error, "streams",
                "\(role.text) may not run \(rule.setting) (\(error.message)), so these ends are refused; grant what it needs, and "
                    + "the role itself to the hub's.")
        }
        return Finding(.good, "streams", "\(rule.setting) fits the database.")
    }
}

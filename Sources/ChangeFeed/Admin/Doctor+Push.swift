import Postgres

/// What alerts need of the database.
extension Doctor {
    /// Whether the audience statement fits the database, without running it, and whether its tables are watched. Never
    /// throws: what fails is a finding.
    ///
    /// - Parameters:
    ///   - statement: `alerts.audience`.
    ///   - tables: `alerts.tables`, each as `schema.table` or a name in `public`.
    package static func examine(audience statement: String, tables: [String], conninfo: String) -> [Finding] {
        do {
            let connection = try AdminSession.open(conninfo)
            return [try audience(AudienceStatement(statement), connection)] + (try alerted(tables, connection))
        } catch {
            return [Finding(.error, "alerts", "The check failed: \(error).")]
        }
    }

    private static func audience(_ statement: AudienceStatement, _ connection: PostgresConnection) throws -> Finding {
        do {
            _ = try statement.run("[]", on: connection)
        } catch let error as PostgresError where error.kind == .server {
            return Finding(
                .error, "alerts",
                "alerts.audience does not work, so nobody is alerted (\(error.message)); correct it, or grant what it needs: "
                    + "it reads only, takes $1::jsonb, and returns the columns row and user_id.")
        }
        try connection.run("set row_security = off")
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

    private static func alerted(_ tables: [String], _ connection: PostgresConnection) throws -> [Finding] {
        let watched = Set(try CatalogReader.tables(from: connection).map { "\($0.schema).\($0.name)" })
        return tables.filter { !watched.contains($0) && !watched.contains("public.\($0)") }.map {
            Finding(.error, "alerts", "\($0) is not watched, so nothing in it alerts anybody; run `roost watch \($0)`.")
        }
    }
}

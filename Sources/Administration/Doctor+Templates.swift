import Postgres
package import Stores

/// Checks of per-table alert templates, and of devices stored by the application.
extension Doctor {
    /// Checks whether the sections of `alerts.templates` have any effect. Never throws: failures become findings.
    ///
    /// - Parameters:
    ///   - templates: the variables that each section names, by `SCHEMA.TABLE`.
    ///   - tables: the tables whose rows cause alerts.
    ///   - statement: `alerts.audience`; nil if not set.
    package static func examine(
        templates: [String: Set<String>], tables: [String], audience statement: String?, conninfo: String
    ) -> [Finding] {
        guard !templates.isEmpty else { return [] }
        var findings = templates.keys.filter { !tables.contains($0) }.sorted().map {
            Finding(
                .warning, "alerts",
                "alerts.templates has a section for \($0), whose rows alert nobody; put it into alerts.tables, or take the section out."
            )
        }
        guard let statement else { return findings }
        do {
            let connection = try AdminSession.openConnection(conninfo)
            let columns = variableNames(try AudienceStatement(statement).columns(on: connection))
            for (table, names) in templates.sorted(by: { $0.key < $1.key }) {
                let missing = names.subtracting(columns).sorted()
                guard !missing.isEmpty else { continue }
                let variables = missing.map { "{\($0)}" }.joined(separator: ", ")
                findings.append(
                    Finding(
                        .warning, "alerts",
                        "The section of \(table) in alerts.templates names \(variables), which alerts.audience does not return, so "
                            + "nothing stands there; add a column of that name, or correct the section."))
            }
        } catch let error as PostgresError where error.kind == .server {
            // The check of the statement itself reports this.
        } catch {
            findings.append(Finding(.error, "alerts", "The check of alerts.templates failed: \(error)."))
        }
        if findings.isEmpty { findings.append(Finding(.good, "alerts", "alerts.templates fits alerts.audience.")) }
        return findings
    }

    /// The columns together with the variables that the hub derives from them.
    private static func variableNames(_ columns: Set<String>) -> Set<String> {
        var known = columns.union(["message_id"])
        if columns.contains("body") { known.insert("preview") }
        if columns.contains("badge") { known.insert("unread") }
        return known
    }

    /// Checks whether `alerts.tokens` fits the database, without looking up any user. Never throws: failures become
    /// findings.
    package static func examine(tokens: AppTokens, conninfo: String) -> [Finding] {
        do {
            let connection = try AdminSession.openConnection(conninfo)
            var findings = [try examineTokens(tokens, connection)]
            if !(try connection.query(DoctorSQL.authenticatedExists).flag(0, 0)) {
                findings.append(
                    Finding(
                        .error, "alerts",
                        "There is no role authenticated, as which policies are asked for users whose phones alerts.tokens reads, so "
                            + "those are not alerted of rows; create it."))
            }
            return findings
        } catch {
            return [Finding(.error, "alerts", "The check of alerts.tokens failed: \(error).")]
        }
    }

    private static func examineTokens(_ tokens: AppTokens, _ connection: PostgresConnection) throws -> Finding {
        do {
            try tokens.examine(on: connection)
        } catch let error as PostgresError where error.kind == .server {
            return Finding(
                .error, "alerts",
                "alerts.tokens does not work, so phones that the application keeps are not alerted (\(error.message)); correct it, or "
                    + "grant what it needs: it only reads, takes $1::text[], and returns the columns user_id and token."
            )
        }
        try connection.runScript("set row_security = off")
        do {
            try tokens.plan(on: connection)
        } catch let error as PostgresError where error.kind == .server {
            return Finding(
                .warning, "alerts",
                "Row level security applies to alerts.tokens (\(error.message)): phones of users whom its policies do not show to the "
                    + "hub's role are not alerted; give the role BYPASSRLS, or a policy for all of them.")
        }
        return Finding(.good, "alerts", "alerts.tokens fits the database.")
    }
}

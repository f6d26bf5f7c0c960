import Postgres

/// Writers whose changes fire no triggers, so that nobody is told of them.
extension Doctor {
    static func writers(_ connection: PostgresConnection) throws -> [Finding] {
        let rows = try connection.query(SQL.silentWriters)
        return (0..<rows.count).map { row in
            let (subject, detail) = (rows.text(row, 1) ?? "", rows.text(row, 2) ?? "")
            return switch rows.text(row, 0) {
            case "subscription":
                Finding(
                    .error, "writers",
                    "The subscription \(detail) writes into \(subject) by logical replication, which fires no triggers of "
                        + "roost's, so these changes reach nobody; watch the table in the database where it is written, "
                        + "with a hub there, or take it out of the subscription.")
            case "setting":
                Finding(
                    .error, "writers",
                    "\(subject.prefix(1).uppercased() + subject.dropFirst()) has session_replication_role = replica, under "
                        + "which triggers are silent, so what is written there to watched tables reaches nobody; run "
                        + "`\(detail)`.")
            case "default":
                Finding(
                    .error, "writers",
                    "The server has session_replication_role = replica for all who set nothing else, so triggers are "
                        + "silent, and no change reaches anybody; run `alter system reset session_replication_role` and "
                        + "`select pg_reload_conf()`.")
            default:
                Finding(
                    .warning, "writers",
                    "A session (\(subject)) has set session_replication_role = replica, under which triggers are silent: "
                        + "what it writes to watched tables reaches nobody; if it is no restore, end it with `select "
                        + "pg_terminate_backend(\(detail))`.")
            }
        }
    }
}

import Postgres

/// The hubs of the database: whether two have one name, and whether writers ring for those that there are.
extension Doctor {
    static func hubs(_ connection: PostgresConnection, _ hub: ExaminedHub) throws -> [Finding] {
        let rows = try connection.query(SQL.nodes)
        let nodes = (0..<rows.count).map { Node(rows, $0) }
        var findings = try nodes.first { $0.name == hub.node }.map { try own($0, connection) } ?? []
        if findings.isEmpty {
            findings.append(Finding(.good, "hubs", "No hub of the name \(hub.node) is connected at present."))
        }
        findings += nodes.filter { !$0.isRung }.map {
            Finding(
                .error, "hubs",
                "Writers do not wake the hub \($0.name), so changes reach it late, by feed.safety_poll_seconds; run "
                    + "`select roost.write_must_ring()` in psql as the owner of the schema roost.")
        }
        let gone = nodes.filter { $0.name != hub.node && $0.connected == 0 && $0.age ?? .zero > hub.retention }
        return findings
            + gone.map {
                Finding(
                    .warning, "hubs",
                    "The hub \($0.name) is not connected and last stored its place at \($0.storedAt), and every "
                        + "writer looks for it; if it does not come back, run `delete from roost.node where name = "
                        + "\($0.literal)`.")
            }
    }

    private static func own(_ node: Node, _ connection: PostgresConnection) throws -> [Finding] {
        guard node.connected > 1 else {
            return node.connected == 1 ? [Finding(.good, "hubs", "One hub is connected as \(node.name).")] : []
        }
        let sessions = try connection.query(SQL.hubSessions, [node.doorbell])
        let places = (0..<sessions.count).map { HubSession(sessions, $0).place }.joined(separator: ", ")
        return [
            Finding(
                .error, "hubs",
                "\(node.connected) hubs are connected as \(node.name) (\(places)) and overwrite each other's place in "
                    + "the feed, so clients of theirs may miss changes after a restart; give each a ROOST_NODE_NAME "
                    + "of its own (if one was killed a moment ago, ask again in 15 s).")
        ]
    }

    /// A row of Nodes.sql.
    private struct Node {
        let name: String
        let doorbell: String
        let connected: Int64
        let age: Duration?
        let storedAt: String
        let isRung: Bool
        let literal: String

        init(_ rows: QueryResult, _ row: Int) {
            name = rows.text(row, 0) ?? ""
            doorbell = rows.text(row, 1) ?? ""
            connected = rows.integer(row, 2) ?? 0
            age = rows.integer(row, 3).map { .seconds($0) }
            storedAt = rows.text(row, 4) ?? "no time"
            isRung = rows.flag(row, 5)
            literal = rows.text(row, 6) ?? ""
        }
    }
}

import ChangeFeed
import Postgres

/// Checks of the database's hubs: duplicate names, and whether writers wake each of them.
extension Doctor {
    /// A lock that any role may take is the only means by which a role without rights can stop hubs.
    static func checkLocks(_ connection: PostgresConnection) throws -> [Finding] {
        let rows = try connection.query(DoctorSQL.foreignLocks)
        guard rows.count > 0 else { return [Finding(.good, "locks", "Only hubs hold advisory locks of roost's.")] }
        return (0..<rows.count).map { row in
            let (pid, role) = (rows.text(row, 0) ?? "", rows.text(row, 1) ?? "")
            let which = rows.text(row, 2).map { ", such as \($0)" } ?? ""
            return Finding(
                .error, "locks",
                "Process \(pid) of the role \(role), which may not use the schema roost, holds \(rows.integer(row, 3) ?? 0) "
                    + "advisory locks of roost's\(which): `roost migrate` and hubs with a new name wait for it; run "
                    + "`select pg_terminate_backend(\(pid))`, and find out who connects as \(role).")
        }
    }

    static func checkHubs(_ connection: PostgresConnection, _ hub: ExaminedHub) throws -> [Finding] {
        let rows = try connection.query(DoctorSQL.nodes)
        let nodes = (0..<rows.count).map { Node(rows, $0) }
        var findings = try nodes.first { $0.name == hub.node }.map { try checkOwnHub($0, connection) } ?? []
        if findings.isEmpty {
            findings.append(Finding(.good, "hubs", "No hub named \(hub.node) is connected at present."))
        }
        findings += nodes.filter { !$0.isRung }.map {
            Finding(
                .error, "hubs",
                "Writers do not wake the hub \($0.name), so it finds changes late, only when it polls "
                    + "(feed.safety_poll_seconds); run `select roost.write_must_ring()` in psql as the owner of the "
                    + "schema roost.")
        }
        findings += try checkStalledHubs(connection)
        let gone = nodes.filter { $0.name != hub.node && $0.connected == 0 && $0.age ?? .zero > hub.retention }
        return findings
            + gone.map {
                Finding(
                    .warning, "hubs",
                    "The hub \($0.name) is not connected (it last stored its place at \($0.storedAt)), but every "
                        + "writer still checks for it; if it does not come back, run `delete from roost.node where "
                        + "name = \($0.literal)`.")
            }
    }

    /// Hubs that are connected but make no progress.
    private static func checkStalledHubs(_ connection: PostgresConnection) throws -> [Finding] {
        let rows = try connection.query(DoctorSQL.stalledHubs, [String(progressPatience)])
        return (0..<rows.count).map { row in
            Finding(
                .error, "hubs",
                "The hub \(rows.text(row, 0) ?? "") is connected, but its place in the outbox does not move: the first "
                    + "change behind it is \(rows.integer(row, 1) ?? 0) s old, and reaches nobody there; its log and its "
                    + "/readyz say why.")
        }
    }

    /// In seconds. A hub stores its position ten times a second while changes come.
    private static let progressPatience = 60

    private static func checkOwnHub(_ node: Node, _ connection: PostgresConnection) throws -> [Finding] {
        guard node.connected > 1 else {
            return node.connected == 1 ? [Finding(.good, "hubs", "One hub is connected as \(node.name).")] : []
        }
        let places = try HubSession.all(of: node.doorbell, on: connection).map(\.place).joined(separator: ", ")
        return [
            Finding(
                .error, "hubs",
                "\(node.connected) hubs are connected as \(node.name) (\(places)) and overwrite each other's place in "
                    + "the feed, so their clients may miss changes after a restart; give each a ROOST_NODE_NAME of its "
                    + "own (if one was killed a moment ago, run this again in 15 s).")
        ]
    }

    /// A row of the statement `nodes`.
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

/// Checks whether the outbox stays small, and whether its changes can be delivered.
extension Doctor {
    static func checkOutbox(
        _ connection: PostgresConnection, _ hub: ExaminedHub, _ limits: DoctorLimits
    ) throws -> [Finding] {
        let state = try connection.query(DoctorSQL.outboxState)
        let (living, dead) = (state.integer(0, 0) ?? 0, state.integer(0, 1) ?? 0)
        let size = Magnitude.bytes(state.integer(0, 2) ?? 0)
        let age = state.integer(0, 3).map { Duration.seconds($0) }
        var findings: [Finding] = []
        if let age, age > hub.retention + limits.pruning {
            findings.append(
                Finding(
                    .warning, "outbox",
                    "The oldest change in the outbox is \(Magnitude.time(age)) old, though feed.retention_hours is "
                        + "\(hub.retention.components.seconds / 3600): a running hub deletes old changes; start one, "
                        + "or see its log for why it cannot."))
        }
        if dead > max(Int64(limits.deadRows), living) {
            findings.append(
                Finding(
                    .warning, "outbox",
                    "The outbox has \(dead) dead rows and \(living) live ones (\(size)): vacuum does not reach it, or "
                        + "an old transaction holds it back; end that transaction, and run `vacuum roost.change`."))
        }
        findings += checkAutovacuum(isOn: state.flag(0, 4), isOffForTable: state.flag(0, 5))
        if findings.isEmpty {
            let oldest = age.map { ", the oldest \(Magnitude.time($0)) old" } ?? ""
            findings.append(Finding(.good, "outbox", "The outbox has about \(living) changes (\(size))\(oldest)."))
        }
        return findings + (try checkUnwatchedChanges(connection))
    }

    private static func checkAutovacuum(isOn: Bool, isOffForTable: Bool) -> [Finding] {
        guard isOn, !isOffForTable else {
            let remedy =
                isOn ? "run `alter table roost.change reset (autovacuum_enabled)`" : "set autovacuum = on"
            return [
                Finding(
                    .warning, "outbox",
                    "Autovacuum is off for the outbox, so deleted rows make it grow and slow down; \(remedy).")
            ]
        }
        return []
    }

    private static func checkUnwatchedChanges(_ connection: PostgresConnection) throws -> [Finding] {
        let rows = try connection.query(DoctorSQL.unwatchedChanges)
        return (0..<rows.count).map { row in
            guard let table = rows.text(row, 1) else {
                return Finding(
                    .warning, "outbox",
                    "The outbox has recent changes of a table that is gone (oid \(rows.text(row, 0) ?? "unknown")); if "
                        + "it was created again, as by a restore, run `roost watch` for the new one.")
            }
            return Finding(
                .warning, "outbox",
                "\(table) was watched until a short while ago; if this was not intended, run `roost watch \(table)`.")
        }
    }
}

/// Checks of the watched tables and their capture.
extension Doctor {
    static func checkTables(_ connection: PostgresConnection, _ hub: ExaminedHub) throws -> [Finding] {
        let count = try CatalogReader.tables(from: connection).count
        let faults = try CatalogReader.tableFaults(from: connection, readsWAL: hub.readsWAL)
        var findings = (0..<faults.count).compactMap { row -> Finding? in
            // "capture" reports tables that the publication leaves out, each with its reason.
            guard let table = faults.text(row, 0), let fault = faults.text(row, 1),
                // The doctor has its own checks for these two.
                fault != "narrow", fault != "applied"
            else {
                return nil
            }
            return faultFinding(fault, of: table, concernsItself: faults.flag(row, 2))
        }
        findings += try CatalogReader.displacedTables(from: connection).map { Finding(.error, "tables", $0.sentence) }
        if count > 0 {
            findings.insert(
                Finding(.good, "tables", count == 1 ? "1 table is watched." : "\(count) tables are watched."), at: 0)
        } else if findings.isEmpty {
            findings = [Finding(.warning, "tables", "No table is watched; run `roost watch TABLE`.")]
        }
        return findings + (try checkCasts(connection))
    }

    /// Columns whose values may have no JSON.
    private static func checkCasts(_ connection: PostgresConnection) throws -> [Finding] {
        let rows = try connection.query(DoctorSQL.castsToJSON)
        return (0..<rows.count).map { row in
            let (table, column) = (rows.text(row, 0) ?? "", rows.text(row, 1) ?? "")
            return Finding(
                .good, "tables",
                "Values of \(table).\(column) (\(rows.text(row, 2) ?? "")) are written as JSON by \(rows.text(row, 3) ?? ""); those "
                    + "for which it fails reach clients as texts.")
        }
    }

    /// - Parameters:
    ///   - fault: a name from TableFaults in Catalog.sql.
    ///   - concernsItself: whether the table itself has the fault, not only its partitions.
    private static func faultFinding(_ fault: String, of table: String, concernsItself: Bool) -> Finding {
        let some = concernsItself ? table : "A partition of \(table)"
        return switch fault {
        case "missing":
            Finding(
                .warning, "tables",
                "\(table) lacks some of roost's triggers, as a partition was added, roost was upgraded or somebody "
                    + "dropped them, so some changes reach nobody; run `roost watch \(table)`.")
        case "silent":
            Finding(
                .error, "tables",
                "\(some) has triggers of roost's that are disabled, so its changes reach nobody; run `roost watch "
                    + "\(table)`, which enables them, or `roost unwatch \(table)`.")
        case "foreign":
            Finding(
                .error, "tables",
                "\(some) has triggers of roost's that differ from those of this version; run `roost watch \(table)`, "
                    + "which creates them again.")
        case "both":
            Finding(
                .error, "tables",
                "\(some) has triggers of roost's and is in the publication roost, so changes are delivered twice; run "
                    + "`roost watch \(table)`, which keeps the one that feed.capture names.")
        case "unread":
            Finding(
                .error, "tables",
                "\(table) is to be read from the WAL, but no hub reads it, so its changes reach nobody; start a hub "
                    + "with feed.capture: wal, or run `roost unwatch \(table)` and, with feed.capture: triggers, "
                    + "`roost watch \(table)`.")
        case "inherits":
            Finding(
                .error, "tables",
                "\(some) inherits from another table, or another one from it, which triggers do not follow, so some changes reach "
                    + "nobody; run a hub with feed.capture: wal, and `roost watch \(table)`, or end the inheritance.")
        default:
            Finding(
                .warning, "tables",
                "\(some) has one of roost's triggers twice, so changes are delivered twice; run `roost unwatch "
                    + "\(table)` and `roost watch \(table)` while nothing writes to it.")
        }
    }
}

/// Checks for writers whose changes fire no triggers, so that clients miss them.
extension Doctor {
    static func checkWriters(_ connection: PostgresConnection) throws -> [Finding] {
        let rows = try connection.query(DoctorSQL.silentWriters)
        return (0..<rows.count).map { row in
            let (subject, detail) = (rows.text(row, 1) ?? "", rows.text(row, 2) ?? "")
            return switch rows.text(row, 0) {
            case "origin":
                Finding(
                    .warning, "writers",
                    "Roost's triggers on \(subject) do not fire where session_replication_role is replica, as an older `roost "
                        + "watch` made them, or a restore enabled them again; run `roost watch \(subject)` as the "
                        + "table's owner, which interrupts nothing.")
            case "subscription":
                Finding(
                    .error, "writers",
                    "The subscription \(detail) writes into \(subject) by logical replication, which does not fire "
                        + "roost's triggers, so these changes reach nobody; watch it with feed.capture: wal, which "
                        + "sees them, or in the database where the rows are written, with a hub there.")
            case "setting":
                Finding(
                    .error, "writers",
                    "\(subject.prefix(1).uppercased() + subject.dropFirst()) has session_replication_role = replica, "
                        + "under which triggers do not fire, so what is written there to watched tables reaches "
                        + "nobody; run `\(detail)`, or watch them with feed.capture: wal, which sees it.")
            case "default":
                Finding(
                    .error, "writers",
                    "The server has session_replication_role = replica for all sessions that do not set it themselves, "
                        + "so triggers do not fire, and no change reaches anybody; run `alter system reset "
                        + "session_replication_role` and `select pg_reload_conf()`.")
            default:
                Finding(
                    .warning, "writers",
                    "A session (\(subject)) has set session_replication_role = replica, under which triggers do not "
                        + "fire: what it writes to watched tables reaches nobody; if it is not a restore, end it with "
                        + "`select pg_terminate_backend(\(detail))`.")
            }
        }
    }
}

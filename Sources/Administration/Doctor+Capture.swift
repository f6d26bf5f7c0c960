import Postgres

/// Checks of reading tables from the WAL: server, publication and slot.
extension Doctor {
    static func checkCapture(
        _ connection: PostgresConnection, _ hub: ExaminedHub, _ limits: DoctorLimits
    ) throws -> [Finding] {
        let publication = try connection.query(PublishingSQL.publicationState)
        let tables = publication.integer(0, 2) ?? 0
        let slot = try connection.query(CaptureDoctorSQL.captureSlot)
        let settings = CaptureSettings(try connection.query(CaptureDoctorSQL.captureSettings))
        var findings: [Finding] = []
        if hub.readsWAL || tables > 0 {
            findings += settings.settingFindings(
                needsSlot: slot.count == 0, needsSender: slot.count == 0 || !slot.flag(0, 3))
            findings += publicationFindings(publication)
            findings += try checkPublishedTables(connection)
        }
        if hub.readsWAL { findings += try checkCaptureRights(connection) }
        findings += slotFindings(slot, tables: tables, hub, settings, limits)
        let left = try connection.query(CaptureDoctorSQL.slotsLeft)
        findings += (0..<left.count).map {
            Finding(
                .warning, "capture",
                "Roost's replication slot \(left.text($0, 0) ?? "") belongs to no database of this server and keeps "
                    + "WAL; run `select pg_drop_replication_slot(\(left.text($0, 1) ?? "…"))`.")
        }
        guard findings.isEmpty, tables > 0 else { return findings }
        return [
            Finding(
                .good, "capture",
                tables == 1 ? "1 table is read from the WAL." : "\(tables) tables are read from the WAL.")
        ]
    }

    private static func publicationFindings(_ publication: QueryResult) -> [Finding] {
        guard publication.count > 0 else {
            return [
                Finding(
                    .warning, "capture",
                    "No table is read from the WAL, though feed.capture is wal; run `roost watch TABLE`, also for tables that "
                        + "have triggers.")
            ]
        }
        if publication.flag(0, 1) {
            return [
                Finding(
                    .error, "capture",
                    "The publication roost covers all tables or a whole schema, so it also publishes what Roost writes "
                        + "and tables that are not watched; drop it, and run `roost watch` for each table.")
            ]
        }
        guard publication.flag(0, 0) else {
            return [
                Finding(
                    .error, "capture",
                    "The publication roost leaves out some operations, or publishes partitions as themselves, so some changes "
                        + "reach nobody; run `alter publication roost set (publish = 'insert, update, delete, truncate', "
                        + "publish_via_partition_root = true)`.")
            ]
        }
        return []
    }

    private static func checkPublishedTables(_ connection: PostgresConnection) throws -> [Finding] {
        let rows = try connection.query(CaptureDoctorSQL.publishedFaults)
        return (0..<rows.count).map { row in
            let table = rows.text(row, 0) ?? ""
            return switch rows.text(row, 1) {
            case "identity":
                Finding(
                    .error, "capture",
                    "\(table), or a partition of it, has no replica identity, so Postgres refuses its UPDATEs and "
                        + "DELETEs while it is published; run `roost watch \(table)`, which sets REPLICA IDENTITY "
                        + "FULL, or give it a primary key.")
            case "unlogged":
                Finding(
                    .error, "capture",
                    "\(table), or a partition of it, is unlogged, so its changes are not in the WAL and reach nobody; run "
                        + "`alter table … set logged`, or `roost unwatch \(table)` and watch it with feed.capture: triggers."
                )
            case "partition":
                Finding(
                    .error, "capture",
                    "\(table) is a partition and published by itself, so its changes reach nobody; run `alter publication "
                        + "roost drop table \(table)`, and `roost watch` for its root.")
            default:
                Finding(
                    .error, "capture",
                    "\(table) is published with a row filter or with only some of its columns, so some changes reach "
                        + "nobody; run `roost watch \(table)`.")
            }
        }
    }

    private static func checkCaptureRights(_ connection: PostgresConnection) throws -> [Finding] {
        let missing = try connection.query(CaptureDoctorSQL.captureRights)
        return (0..<missing.count).map {
            Finding(
                .error, "capture",
                "This role lacks \(missing.text($0, 0) ?? ""), which is needed to read the WAL; grant it, or connect "
                    + "as the owner."
            )
        }
    }

    private static func slotFindings(
        _ slot: QueryResult, tables: Int64, _ hub: ExaminedHub, _ settings: CaptureSettings, _ limits: DoctorLimits
    ) -> [Finding] {
        guard slot.count > 0, let name = slot.text(0, 0) else {
            guard tables > 0 else { return [] }
            return [
                Finding(
                    .error, "capture",
                    "The logical slot is gone, so changes of published tables are lost until a hub with feed.capture: "
                        + "wal creates another and tells clients; start such a hub.")
            ]
        }
        let drop = "run `select pg_drop_replication_slot('\(name)')`"
        guard tables > 0 else {
            // A running hub drops the slot by itself.
            guard !slot.flag(0, 3) else { return [] }
            return [
                Finding(
                    .warning, "capture",
                    "The logical slot \(name) is left over: no table is read from the WAL, but the slot keeps WAL "
                        + "until Postgres' disk is full; \(drop).")
            ]
        }
        guard slot.flag(0, 1) else {
            return [
                Finding(
                    .error, "capture",
                    "The replication slot \(name) belongs to another plugin or database, so no hub can read it; "
                        + "\(drop)."
                )
            ]
        }
        guard slot.flag(0, 2) else {
            return [
                Finding(
                    .error, "capture",
                    "The logical slot \(name) is lost, as it kept more WAL than max_slot_wal_keep_size allows: a hub "
                        + "with feed.capture: wal creates another and tells clients to load their data again; start "
                        + "such a hub.")
            ]
        }
        let kept = slot.integer(0, 4) ?? 0
        var findings: [Finding] = []
        if !slot.flag(0, 3) {
            findings.append(
                Finding(
                    hub.readsWAL ? .warning : .error, "capture",
                    "Nobody reads the logical slot \(name), which keeps \(Magnitude.bytes(kept)) of WAL, so changes wait; "
                        + "start a hub with feed.capture: wal, or take its tables out with `roost unwatch`."))
        }
        if let bound = settings.keptBytes, bound >= 0, kept > bound / 2 {
            findings.append(
                Finding(
                    .warning, "capture",
                    "The logical slot \(name) keeps \(Magnitude.bytes(kept)) of WAL, and is lost at "
                        + "\(Magnitude.bytes(bound)) (max_slot_wal_keep_size); the hub's log says why it does not keep "
                        + "up."
                ))
        } else if let unread = slot.integer(0, 5), unread > Int64(limits.walBytes) * 4 {
            findings.append(
                Finding(
                    .warning, "capture",
                    "\(Magnitude.bytes(unread)) of WAL have not been read yet; the hub's log says why it does not keep "
                        + "up."))
        }
        if settings.hasStandby, slot.text(0, 6) == "false" {
            findings.append(
                Finding(
                    .warning, "capture",
                    "The logical slot \(name) is not synchronised to standbys, so a failover loses it, and clients are "
                        + "told to load their data again; docs/capture.md says how to have it synchronised "
                        + "(ALTER_REPLICATION_SLOT)."))
        }
        return findings
    }
}

/// The server's settings for reading the WAL.
private struct CaptureSettings {
    private let level: String
    private let mayReplicate: Bool
    private let role: String
    private let slots: (most: Int64, used: Int64)
    private let senders: (most: Int64, used: Int64)
    /// The most WAL that a slot may retain; -1 if unlimited, nil if unknown.
    let keptBytes: Int64?
    let hasStandby: Bool

    init(_ row: QueryResult) {
        level = row.text(0, 0) ?? "unknown"
        mayReplicate = row.flag(0, 1)
        role = row.text(0, 2) ?? ""
        slots = (row.integer(0, 3) ?? 0, row.integer(0, 4) ?? 0)
        senders = (row.integer(0, 5) ?? 0, row.integer(0, 6) ?? 0)
        keptBytes = row.integer(0, 7)
        hasStandby = row.flag(0, 8)
    }

    func settingFindings(needsSlot: Bool, needsSender: Bool) -> [Finding] {
        var findings: [Finding] = []
        if level != "logical" {
            findings.append(
                Finding(
                    .error, "capture",
                    "wal_level is \(level), so tables cannot be read from the WAL; run `alter system set wal_level = "
                        + "logical` and restart Postgres, or use feed.capture: triggers."))
        }
        if !mayReplicate {
            findings.append(
                Finding(
                    .error, "capture",
                    "This role may not replicate, which is needed to read the WAL; run `alter role \(role) "
                        + "replication`, or grant what your provider has for that, such as rds_replication."))
        }
        if needsSlot, slots.used >= slots.most {
            findings.append(
                Finding(
                    .error, "capture",
                    "All \(slots.most) replication slots are in use; raise max_replication_slots (needs a restart), or "
                        + "drop one that nobody needs."))
        }
        if needsSender, senders.used >= senders.most {
            findings.append(
                Finding(
                    .error, "capture",
                    "All \(senders.most) walsenders are in use; raise max_wal_senders (needs a restart), or end one "
                        + "that nobody needs."
                ))
        }
        if keptBytes == -1 {
            findings.append(
                Finding(
                    .warning, "capture",
                    "max_slot_wal_keep_size is not set, so WAL fills Postgres' disk while no hub reads it; set it to "
                        + "what the disk can spare, such as `alter system set max_slot_wal_keep_size = '10GB'` and "
                        + "`select pg_reload_conf()`."
                ))
        }
        return findings
    }
}

/// Queries of `roost doctor` about reading tables from the WAL.
enum CaptureDoctorSQL: String, NamedStatement {
    case captureSettings, captureSlot, slotsLeft, publishedFaults, unjudgedDeletions, captureRights
    static let file = StatementFile("CaptureDoctor.sql")
}

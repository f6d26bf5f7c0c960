import Postgres
import Schema

/// Examines a database as a hub would use it.
package enum Doctor {
    typealias Check = (PostgresConnection) throws -> [Finding]

    /// Runs all checks. Never throws: failures become findings.
    package static func examineDatabase(
        conninfo: String, for hub: ExaminedHub = ExaminedHub(), limits: DoctorLimits = DoctorLimits()
    ) -> [Finding] {
        let connection: PostgresConnection
        do {
            connection = try AdminSession.openConnection(conninfo)
        } catch let error as PostgresError where error.isOfPooler {
            return [Finding(.error, "pooler", error.message + ".")]
        } catch {
            let failure = error as? PostgresError ?? PostgresError(.connection, "\(error)")
            return [Finding(.error, "postgres", failure.connectionSentence)]
        }
        var findings = [Finding(.good, "postgres", "Postgres can be reached.")]
        runChecks([
            ("version", checkVersion), ("primary", checkPrimary), ("listen", checkListen), ("clock", checkClock),
            ("connections", { try checkConnections($0, hub) }), ("transactions", { try checkTransactions($0, limits) }),
            ("queue", checkNotificationQueue), ("standbys", { try checkStandbys($0, limits) }),
            ("slots", { try checkIdleSlots($0, limits) }),
            ("schema", checkSchema),
        ])
        // Checks that depend on the schema cannot run if it is missing, inaccessible or of another version.
        guard findings.contains(where: { $0.subject == "schema" && $0.severity == .good }) else { return findings }
        runChecks([("rights", checkRights)])
        if !findings.contains(where: { $0.subject == "rights" && $0.severity == .error }) {
            runChecks([
                ("locks", checkLocks), ("hubs", { try checkHubs($0, hub) }),
                ("outbox", { try checkOutbox($0, hub, limits) }),
            ])
        }
        runChecks([
            ("tables", { try checkTables($0, hub) }), ("capture", { try checkCapture($0, hub, limits) }),
            ("writers", checkWriters),
            ("realtime", checkRealtime), ("roles", checkRoles), ("readers", checkReaders),
            ("policies", checkPolicies), ("scope", checkScopes),
        ])
        return findings

        func runChecks(_ checks: [(String, Check)]) {
            for (subject, check) in checks {
                do {
                    findings += try check(connection)
                } catch {
                    findings.append(Finding(.error, subject, "The check failed: \(error)."))
                }
            }
        }
    }

    private static func checkVersion(_ connection: PostgresConnection) -> [Finding] {
        let major = connection.serverVersion / 10_000
        return major >= 13
            ? [Finding(.good, "version", "Postgres \(major) is supported.")]
            : [Finding(.error, "version", "Postgres \(major) is too old; roost needs 13 or newer.")]
    }

    /// A transaction pooler gives every transaction another session, which loses LISTEN.
    private static func checkListen(_ connection: PostgresConnection) throws -> [Finding] {
        try connection.runScript("listen roost_doctor")
        let first = try connection.query("select pg_backend_pid()").text(0, 0)
        try connection.runScript("notify roost_doctor")
        let second = try connection.query("select pg_backend_pid()").text(0, 0)
        let deadline = ContinuousClock.now + .seconds(2)
        var heard = try connection.takeNotifications()
        while heard == 0, ContinuousClock.now < deadline {
            // The notification arrives with the answer to the next statement at the latest.
            _ = try connection.query("select pg_sleep(0.02)")
            heard = try connection.takeNotifications()
        }
        try connection.runScript("unlisten roost_doctor")
        return first == second && heard > 0
            ? [Finding(.good, "listen", "LISTEN works on this connection.")]
            : [
                Finding(
                    .error, "listen",
                    "LISTEN does not work here, probably because of a transaction pooler; connect to Postgres directly."
                )
            ]
    }

    private static func checkClock(_ connection: PostgresConnection) throws -> [Finding] {
        guard let complaint = try ServerClock.complaint(about: connection) else {
            return [Finding(.good, "clock", "The clocks here and at Postgres agree.")]
        }
        return [Finding(.warning, "clock", complaint)]
    }

    private static func checkSchema(_ connection: PostgresConnection) throws -> [Finding] {
        do {
            try RoostSchema.demandCurrent(on: connection)
        } catch let error as PostgresError where error.sqlState == SQLState.insufficientPrivilege {
            return [Finding(.error, "rights", "\(error.message); grant USAGE on schema roost, or use its owner.")]
        } catch let error as PostgresError where error.kind == .server {
            return [Finding(.error, "schema", error.message)]
        }
        return [Finding(.good, "schema", "The schema roost is version \(RoostSchema.currentVersion).")]
    }

    private static func checkRights(_ connection: PostgresConnection) throws -> [Finding] {
        let missing = try connection.query(DoctorSQL.rights)
        guard missing.count > 0 else { return [Finding(.good, "rights", "This role may do what the hub does.")] }
        return (0..<missing.count).map { row in
            let isOptional = missing.flag(row, 1)
            return Finding(
                isOptional ? .warning : .error, "rights",
                "This role lacks \(missing.text(row, 0) ?? ""); grant it, or connect as the owner"
                    + (isOptional ? ". Nothing else needs it." : "."))
        }
    }
}

/// The limits beyond which the doctor reports something.
package struct DoctorLimits: Sendable {
    /// The longest open transaction; meanwhile vacuum cannot clean up anything younger.
    package var transaction: Duration = .seconds(300)
    /// The greatest lag of pruning behind the retention; a hub prunes once a minute.
    package var pruning: Duration = .seconds(600)
    /// The outbox's dead rows, if they outnumber the live ones.
    package var deadRows = 100_000
    /// Bytes of WAL that a standby may have to replay, or that an unread slot may retain: four segments.
    package var walBytes = 67_108_864
    /// A standby's greatest delay.
    package var standby: Duration = .seconds(30)

    package init() {}
}

/// The facts about a hub that the doctor needs.
package struct ExaminedHub: Sendable {
    /// `node.name`.
    package var node: String
    /// `feed.retention_hours`.
    package var retention: Duration
    /// Pushes take sessions of their own.
    package var sendsPushes: Bool
    /// Listening to notifications takes a session.
    package var listens: Bool
    /// True if `feed.capture` is `wal`; storing takes a session.
    package var readsWAL: Bool
    /// True with `streams.on_close`, which takes a session.
    package var storesStreams: Bool
    /// `feed.policy_sessions`.
    package var policySessions: Int

    package init(
        node: String = "roost", retention: Duration = .seconds(86_400), sendsPushes: Bool = false,
        listens: Bool = false, readsWAL: Bool = false, storesStreams: Bool = false, policySessions: Int = 2
    ) {
        self.node = node
        self.retention = retention
        self.sendsPushes = sendsPushes
        self.listens = listens
        self.readsWAL = readsWAL
        self.storesStreams = storesStreams
        self.policySessions = policySessions
    }

    /// The greatest number of simultaneous Postgres sessions of the hub: two for the feed, two for conditions,
    /// `policySessions` for policies of rows, two for policies of channels, one each for presence and for checking who
    /// may come back, two for reading what clients missed; two for pushes, and one while the operator looks at alerts;
    /// one that listens to notifications; one that stores changes from the WAL (its walsender counts elsewhere); one
    /// that stores streams; one that stores broadcasts, from the first client that asks for it.
    var sessions: Int {
        11 + policySessions + (sendsPushes ? 3 : 0) + (listens ? 1 : 0) + (readsWAL ? 1 : 0) + (storesStreams ? 1 : 0)
    }
}

/// The result of a check.
package struct Finding: Sendable, Equatable {
    package enum Severity: String, Sendable { case good, warning, error }

    package let severity: Severity
    package let subject: String
    /// One sentence; for a problem, with its remedy.
    package let message: String

    package init(_ severity: Severity, _ subject: String, _ message: String) {
        self.severity = severity
        self.subject = subject
        self.message = message
    }
}

/// Formats quantities for operators.
enum Magnitude {
    /// In the largest unit of which there are at least two: 900 B, 64 MB.
    static func bytes(_ count: Int64) -> String {
        let units = ["B", "kB", "MB", "GB", "TB"]
        var (rest, unit) = (count, 0)
        while rest >= 2048, unit < units.count - 1 { (rest, unit) = (rest / 1024, unit + 1) }
        return "\(rest) \(units[unit])"
    }

    /// In the largest unit of which there are at least two: 90 s, 5 min, 47 h, 3 days.
    static func time(_ duration: Duration) -> String {
        let seconds = duration.components.seconds
        return switch seconds {
        case ..<120: "\(seconds) s"
        case ..<7200: "\(seconds / 60) min"
        case ..<172_800: "\(seconds / 3600) h"
        default: "\(seconds / 86_400) days"
        }
    }
}

/// Queries of `roost doctor`. They only read, and work for a role with few rights.
enum DoctorSQL: String, NamedStatement {
    case connections, longTransactions, notificationQueue, standbys, idleSlots, rights, nodes, stalledHubs, outboxState,
        castsToJSON, unwatchedChanges, silentWriters, foreignLocks, policiesOfAnyTopic, realtimeState,
        tablesWithoutPolicy, alertsOfDay, silentHubs, authenticatedExists,
        lastingDeletions
    static let file = StatementFile("Doctor.sql")
}

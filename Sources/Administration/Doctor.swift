import Postgres
import Schema

/// Looks at a database as a hub would use it.
package enum Doctor {
    typealias Check = (PostgresConnection) throws -> [Finding]

    /// Never throws: what fails is a finding.
    package static func examine(
        conninfo: String, for hub: ExaminedHub = ExaminedHub(), limits: DoctorLimits = DoctorLimits()
    ) -> [Finding] {
        let connection: PostgresConnection
        do {
            connection = try AdminSession.open(conninfo)
        } catch let error as PostgresError where error.isOfPooler {
            return [Finding(.error, "pooler", error.message + ".")]
        } catch {
            let failure = error as? PostgresError ?? PostgresError(.connection, "\(error)")
            return [Finding(.error, "postgres", failure.connectionSentence)]
        }
        var findings = [Finding(.good, "postgres", "Postgres can be reached.")]
        run([
            ("version", version), ("primary", primary), ("listen", listen), ("clock", clock),
            ("connections", { try connections($0, hub) }), ("transactions", { try transactions($0, limits) }),
            ("queue", queue), ("standbys", { try standbys($0, limits) }), ("slots", { try slots($0, limits) }),
            ("schema", schema),
        ])
        // What rests on the schema cannot be asked where it is missing, of another version or out of reach.
        guard findings.contains(where: { $0.subject == "schema" && $0.severity == .good }) else { return findings }
        run([("rights", rights)])
        if !findings.contains(where: { $0.subject == "rights" && $0.severity == .error }) {
            run([("locks", locks), ("hubs", { try hubs($0, hub) }), ("outbox", { try outbox($0, hub, limits) })])
        }
        run([
            ("tables", { try tables($0, hub) }), ("capture", { try capture($0, hub, limits) }), ("writers", writers),
            ("realtime", realtime), ("roles", roles), ("readers", readers),
            ("policies", policies), ("scope", scopes),
        ])
        return findings

        func run(_ checks: [(String, Check)]) {
            for (subject, check) in checks {
                do {
                    findings += try check(connection)
                } catch {
                    findings.append(Finding(.error, subject, "The check failed: \(error)."))
                }
            }
        }
    }

    private static func version(_ connection: PostgresConnection) -> [Finding] {
        let major = connection.serverVersion / 10_000
        return major >= 13
            ? [Finding(.good, "version", "Postgres \(major) is supported.")]
            : [Finding(.error, "version", "Postgres \(major) is too old; roost needs 13 or newer.")]
    }

    /// A transaction pooler gives every transaction another session, which loses LISTEN.
    private static func listen(_ connection: PostgresConnection) throws -> [Finding] {
        try connection.run("listen roost_doctor")
        let first = try connection.query("select pg_backend_pid()").text(0, 0)
        try connection.run("notify roost_doctor")
        let second = try connection.query("select pg_backend_pid()").text(0, 0)
        let deadline = ContinuousClock.now + .seconds(2)
        var heard = try connection.takeNotifications()
        while heard == 0, ContinuousClock.now < deadline {
            // The ring comes at the latest with the answer to the next statement.
            _ = try connection.query("select pg_sleep(0.02)")
            heard = try connection.takeNotifications()
        }
        try connection.run("unlisten roost_doctor")
        return first == second && heard > 0
            ? [Finding(.good, "listen", "LISTEN works on this connection.")]
            : [
                Finding(
                    .error, "listen",
                    "LISTEN does not work here, probably because of a transaction pooler; connect to Postgres directly."
                )
            ]
    }

    private static func clock(_ connection: PostgresConnection) throws -> [Finding] {
        guard let complaint = try ServerClock.complaint(about: connection) else {
            return [Finding(.good, "clock", "The clocks here and at Postgres agree.")]
        }
        return [Finding(.warning, "clock", complaint)]
    }

    private static func schema(_ connection: PostgresConnection) throws -> [Finding] {
        do {
            try RoostSchema.demandCurrent(on: connection)
        } catch let error as PostgresError where error.sqlState == SQLState.insufficientPrivilege {
            return [Finding(.error, "rights", "\(error.message); grant USAGE on schema roost, or use its owner.")]
        } catch let error as PostgresError where error.kind == .server {
            return [Finding(.error, "schema", error.message)]
        }
        return [Finding(.good, "schema", "The schema roost is version \(RoostSchema.currentVersion).")]
    }

    private static func rights(_ connection: PostgresConnection) throws -> [Finding] {
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

/// From where on the doctor finds something worth a word.
package struct DoctorLimits: Sendable {
    /// How long a transaction may be open; meanwhile vacuum cleans nothing up that is younger.
    package var transaction: Duration = .seconds(300)
    /// How late pruning may be behind the retention; the hub prunes once a minute.
    package var pruning: Duration = .seconds(600)
    /// Dead rows of the outbox, where they are more than the living ones.
    package var deadRows = 100_000
    /// Bytes of WAL that a standby may have to replay, or that a slot without a reader may keep: four segments.
    package var walBytes = 67_108_864
    /// How far behind a standby may be.
    package var standby: Duration = .seconds(30)

    package init() {}
}

/// What the doctor has to know of the hub that it examines a database for.
package struct ExaminedHub: Sendable {
    /// `node.name`.
    package var node: String
    /// `feed.retention_hours`.
    package var retention: Duration
    /// Pushes take sessions of their own.
    package var sendsPushes: Bool
    /// Notifications take one.
    package var listens: Bool
    /// `feed.capture` is `wal`; storing takes one.
    package var readsWAL: Bool
    /// `streams.on_close` takes one.
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

    /// The most sessions with Postgres that the hub has at a time: two of the feed, two for conditions, those for policies of rows, two
    /// for policies of channels, one each for presence and for who may come back, two for readings of what clients missed; two for
    /// pushes, and one while the operator looks at alerts; one that listens to notifications; one that stores what is read from the WAL
    /// (its walsender counts elsewhere); one that stores streams; one that keeps broadcasts, from the first that asks for it.
    var sessions: Int {
        11 + policySessions + (sendsPushes ? 3 : 0) + (listens ? 1 : 0) + (readsWAL ? 1 : 0) + (storesStreams ? 1 : 0)
    }
}

/// What a check found.
package struct Finding: Sendable, Equatable {
    package enum Severity: String, Sendable { case good, warning, error }

    package let severity: Severity
    package let subject: String
    /// One sentence; where something is wrong, it says what to do.
    package let message: String

    package init(_ severity: Severity, _ subject: String, _ message: String) {
        self.severity = severity
        self.subject = subject
        self.message = message
    }
}

/// Numbers as an operator reads them.
enum Magnitude {
    /// In the largest unit of which there are two: 900 B, 64 MB.
    static func bytes(_ count: Int64) -> String {
        let units = ["B", "kB", "MB", "GB", "TB"]
        var (rest, unit) = (count, 0)
        while rest >= 2048, unit < units.count - 1 { (rest, unit) = (rest / 1024, unit + 1) }
        return "\(rest) \(units[unit])"
    }

    /// In the largest unit of which there are two: 90 s, 5 min, 47 h, 3 days.
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

/// What `roost doctor` asks of a database. All of it reads only, and works for a role that may do little.
enum DoctorSQL: String, NamedStatement {
    case connections, longTransactions, notificationQueue, standbys, idleSlots, rights, nodes, stalledHubs, outboxState,
        castsToJSON, unwatchedChanges, silentWriters, foreignLocks, policiesOfAnyTopic, realtimeState,
        tablesWithoutPolicy, alertsOfDay, silentHubs, authenticatedExists,
        lastingDeletions
    static let file = StatementFile("Doctor.sql")
}

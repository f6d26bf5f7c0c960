import Postgres

/// Checks of the alert settings, and of the alerts of the last day.
extension Doctor {
    /// Checks whether alerts can be trusted: which users get them, whether silent hubs delay them, and whether apps
    /// prove receipt. Never throws: failures become findings.
    ///
    /// - Parameters:
    ///   - condition: `alerts.when`.
    ///   - proofSeconds: `alerts.proof_seconds`.
    ///   - many: the number of alerts from which a share of them is conclusive.
    package static func examineAlerts(
        alertsWhen condition: String, proofSeconds: Int, conninfo: String, many: Int = 20
    ) -> [Finding] {
        do {
            let connection = try AdminSession.openConnection(conninfo)
            let day = try connection.query(DoctorSQL.alertsOfDay)
            var findings = [conditionFinding(when: condition, proofSeconds)]
            findings.append(try checkSilentHubs(connection, delayed: day.boundedInteger(0, 4) ?? 0, many))
            // With `away`, no app is asked for a proof.
            if condition != "away" { findings.append(proofsFinding(day, proofSeconds, many)) }
            return findings
        } catch {
            return [Finding(.error, alertSubject, "The check of alerts failed: \(error).")]
        }
    }

    private static let alertSubject = "alerts"

    private static func conditionFinding(when condition: String, _ proofSeconds: Int) -> Finding {
        let text =
            switch condition {
            case "away":
                "users with an open socket get no alert, so an app that the system has stopped misses its alerts for about a "
                    + "minute; set unseen where that matters."
            case "unreceived":
                "users get an alert unless an app of theirs proves within \(proofSeconds) s to have received the message; set "
                    + "unseen where apps in the background show no messages of their own."
            default:
                "users get an alert unless an app of theirs that is on the screen proves within \(proofSeconds) s to have "
                    + "received the message; set unreceived where apps in the background show messages themselves."
            }
        return Finding(.good, alertSubject, "alerts.when is \(condition): \(text)")
    }

    /// An alert waits, for half a minute at most, for all hubs on which its user is online.
    private static func checkSilentHubs(_ connection: PostgresConnection, delayed: Int64, _ many: Int) throws -> Finding
    {
        let rows = try connection.query(DoctorSQL.silentHubs)
        let hubs = (0..<rows.count).map { (name: rows.text($0, 0) ?? "", waiting: rows.boundedInteger($0, 1) ?? 0) }
        let (silent, strangers) = (hubs.filter { $0.waiting > 0 }, hubs.filter { $0.waiting == 0 })
        func names(_ hubs: [(name: String, waiting: Int64)]) -> String {
            hubs.map(\.name).joined(separator: ", ")
        }
        if !silent.isEmpty {
            return Finding(
                .warning, alertSubject,
                "Alerts wait, each for 30 s, for hubs that have users online and say nothing "
                    + "(\(silent.map { "\($0.name): \($0.waiting)" }.joined(separator: ", "))); see in their logs why, and set "
                    + "apns and alerts on every hub of this database alike.")
        }
        if !strangers.isEmpty {
            return Finding(
                .warning, alertSubject,
                "Hubs that have users online send no pushes (\(names(strangers))), so each alert of these users waits 30 s for a word of "
                    + "theirs; set apns and alerts there, too.")
        }
        if delayed >= many {
            return Finding(
                .warning, alertSubject,
                "\(delayed) alerts of the last day were sent 30 s late, as a hub where their users were online said nothing; see in the "
                    + "logs which hub was killed, hung or without Postgres.")
        }
        return Finding(.good, alertSubject, "No alert waits for a hub that says nothing.")
    }

    private static func proofsFinding(_ day: QueryResult, _ proofSeconds: Int, _ many: Int) -> Finding {
        let (asked, proven) = (day.boundedInteger(0, 0) ?? 0, day.boundedInteger(0, 1) ?? 0)
        let (unproven, users) = (day.boundedInteger(0, 2) ?? 0, day.boundedInteger(0, 3) ?? 0)
        guard asked > 0 else {
            return Finding(.good, alertSubject, "No app was asked in the last day to prove that a message arrived.")
        }
        let share = "Apps were asked to prove \(asked) message\(asked == 1 ? "" : "s") in the last day; "
        guard unproven >= many, unproven * 2 > asked else {
            return Finding(.good, alertSubject, share + "\(unproven) were alerted for want of a proof.")
        }
        if proven == 0 {
            return Finding(
                .warning, alertSubject,
                share + "none was proven, and \(unproven) were alerted (unproven, \(users) users): these clients, or "
                    + "a proxy before the hub, answer no pings; let WebSocket pings through to the apps, or set "
                    + "alerts.when: away.")
        }
        return Finding(
            .warning, alertSubject,
            share + "\(unproven) were alerted for want of a proof (unproven, \(users) users): these apps are stopped "
                + "while they count as on the screen, or answer later than in \(proofSeconds) s; have them say app_state, "
                + "let proxies pass WebSocket pings, or raise alerts.proof_seconds.")
    }
}

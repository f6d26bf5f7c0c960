import Hub
import Postgres

/// The columns of `roost.push_activity` that the hub works with, in one order for all statements.
enum ActivityRow {
    private static let columns = """
        a.id, a.user_id, a.session, a.token, a.environment, a.bundle, a.conversation, a.node, \
        floor(extract(epoch from a.registered_at) * 1000)::bigint, \
        floor(extract(epoch from a.started_at) * 1000)::bigint, a.timestamp, a.version, a.state, a.ended_at is not null, \
        a.posted, a.delivered >= a.timestamp
        """

    /// A statement with the columns in place of `{activity}`.
    static func statement(_ template: String) -> String { SQLTemplate(template).filled(["activity": columns]) }

    /// What is no activity of roost's is left out.
    static func all(_ rows: QueryResult) -> [OwnedActivity] {
        (0..<rows.count).compactMap { OwnedActivity(rows, $0, from: 0) }
    }
}

extension OwnedActivity {
    /// Nil where there is none.
    init?(_ rows: QueryResult, _ row: Int, from first: Int) {
        guard row < rows.count, let id = rows.text(row, first), let user = rows.text(row, first + 1),
            let destination = PushDestination(rows, row, from: first + 3), let node = rows.text(row, first + 7)
        else { return nil }
        activity = ActivityRegistration(
            id: id, user: user, session: rows.text(row, first + 2), destination: destination,
            conversation: rows.text(row, first + 6), registeredAt: rows.integer(row, first + 8) ?? 0,
            startedAt: rows.integer(row, first + 9) ?? 0, timestamp: rows.integer(row, first + 10) ?? 0,
            version: Int(rows.integer(row, first + 11) ?? 0), state: rows.bytes(row, first + 12).map { Array($0) },
            isPosted: rows.flag(row, first + 14), wasDelivered: rows.flag(row, first + 15))
        self.node = node
        hasEnded = rows.flag(row, first + 13)
    }
}

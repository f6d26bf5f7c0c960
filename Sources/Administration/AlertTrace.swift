import Postgres
package import Wire

/// What became of alerts and why, as the queue remembers it: for `roost alerts`.
package enum AlertTrace {
    /// One alert: a message for a user.
    package struct Entry: Sendable, Equatable {
        package let message: Name
        package let user: Name
        /// `due`, `held`, `elsewhere`, `dropped`, `taken` or `expired`, as `roost.alert.state` has it.
        package let state: String
        /// A word of `AlertReason`; nil for one that an older hub put there.
        package let reason: String?
        /// When it was put into the queue.
        package let createdAt: String
        /// When it was taken to be sent, or when it is decided on at the latest; nil where neither is to be said.
        package let at: String?
        /// The phones that it was sent to, and what Apple said; nil where there is none.
        package let phones: String?
    }

    package enum Subject: Sendable {
        /// The message as the queue names it (`public.messages 7`), or its primary key alone.
        case message(String)
        case user(String)
    }

    /// The newest first.
    ///
    /// - Throws: `AdminError` with a sentence.
    package static func read(_ subject: Subject, limit: Int, conninfo: String) throws -> [Entry] {
        try administer("read the alerts") {
            let connection = try AdminSession.open(conninfo)
            let rows =
                switch subject {
                case .message(let text):
                    try connection.query(AlertTraceSQL.alertsOfMessage, [text, String(limit)], within: patience)
                case .user(let text):
                    try connection.query(AlertTraceSQL.alertsOfUser, [text, String(limit)], within: patience)
                }
            return (0..<rows.count).compactMap { row in
                guard let message = rows.text(row, 0), let user = rows.text(row, 1), let state = rows.text(row, 2),
                    let created = rows.text(row, 4)
                else { return nil }
                return Entry(
                    message: Name(message), user: Name(user), state: state, reason: rows.text(row, 3),
                    createdAt: created,
                    at: rows.text(row, 5), phones: rows.text(row, 6))
            }
        }
    }

    private static let patience = Duration.seconds(30)
}

enum AlertTraceSQL: String, NamedStatement {
    case alertsOfMessage, alertsOfUser
    static let file = StatementFile("AlertTrace.sql")
}

package import Postgres
package import Wire

/// The outcomes of alerts and their reasons, as remembered by the queue: for `roost alerts` and the operator's page.
package enum AlertTrace {
    /// One alert: a message for a user.
    package struct Entry: Sendable, Equatable {
        package let message: Name
        package let user: Name
        /// `due`, `held`, `elsewhere`, `dropped`, `taken` or `expired`, as in `roost.alert.state`.
        package let state: String
        /// A word of `AlertReason`; nil for an alert queued by an older hub.
        package let reason: String?
        /// The time when it was queued, in milliseconds since 1970.
        package let createdAt: Int64
        /// The time when it was taken to be sent, or the latest time of the decision on it; nil if neither applies.
        package let at: Int64?
        /// The phones that it was sent to, each as the beginning of its token, and Apple's answer; nil if there is none.
        package let phones: String?
    }

    package enum Subject: Sendable {
        /// The message's key in the queue (`public.messages 7`), or its primary key alone.
        case message(String)
        case user(String)

        fileprivate var text: String {
            switch self {
            case .message(let text), .user(let text): text
            }
        }

        fileprivate var statement: AlertTraceSQL {
            switch self {
            case .message: .alertsOfMessage
            case .user: .alertsOfUser
            }
        }
    }

    /// Reads the newest alerts of a subject, the newest first.
    ///
    /// - Throws: `PostgresError`.
    package static func read(
        _ subject: Subject, limit: Int, on connection: PostgresConnection, within patience: Duration
    ) throws -> [Entry] {
        // libpq would truncate it at a NUL, and it would name something else.
        guard !subject.text.utf8.contains(0) else { return [] }
        let rows = try connection.query(subject.statement, [subject.text, String(limit)], within: patience)
        return (0..<rows.count).compactMap { row in
            guard let message = rows.name(row, 0), let user = rows.name(row, 1), let state = rows.text(row, 2),
                let created = rows.boundedInteger(row, 4)
            else { return nil }
            return Entry(
                message: message, user: user, state: state, reason: rows.text(row, 3), createdAt: created,
                at: rows.boundedInteger(row, 5), phones: rows.text(row, 6))
        }
    }
}

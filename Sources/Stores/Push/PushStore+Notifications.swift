package import Hub
import Matching
import Postgres
package import Wire

/// Notifications of backends.
extension PushStore {
    /// A recipient of a notification, as far as known.
    package struct NotifiedUser: Sendable, Equatable {
        package let user: Name
        /// The number of phones for alerts, registered or the application's.
        package let phones: Int
        /// True if a phone or an activity was registered, or the user is online.
        package let isKnown: Bool
        /// True if a notification of the same id was sent before, or is about to be.
        package let isRepeated: Bool

        package init(user: Name, phones: Int, isKnown: Bool, isRepeated: Bool) {
            self.user = user
            self.phones = phones
            self.isKnown = isKnown
            self.isRepeated = isRepeated
        }
    }

    /// The recipients of a notification.
    package enum Recipients: Sendable, Equatable {
        /// The named users, or those of the audience who have not muted it.
        case users([NotifiedUser])
        /// The database cannot name the recipients now, for a temporary reason.
        case unanswered
        /// The statement fails, or names too many; the log has the reason.
        case failed
    }

    /// Finds the recipients of a notification, and their phones.
    ///
    /// - Parameter statement: `alerts.audience`.
    /// - Throws: `PostgresError` if the database does not answer.
    package func recipients(of notification: UserNotification, statement: String) throws -> Recipients {
        let row = RowChange(
            id: 0, table: .notifications, operation: .insert, commitTimestamp: "", record: notification.json,
            oldRecord: nil, isReduced: false)
        // Also reads the application's phones.
        let audience = try audience(for: [row], statement: statement)
        guard audience.unanswered.isEmpty else { return .unanswered }
        guard audience.failed == 0 else { return .failed }
        switch notification.recipients {
        case .users(let users): return .users(try notified(users, by: notification))
        case .audience:
            return .users(try notified(audience.members.filter { !$0.isMuted }.map(\.user), by: notification))
        }
    }

    private func notified(_ users: [Name], by notification: UserNotification) throws -> [NotifiedUser] {
        var list = TextArray()
        for user in users { list.append(user.utf8) }
        let rows = try connection.query(AppTokenSQL.notifiedUsers, [list.literal, notification.key.text])
        return (0..<rows.count).compactMap { row in
            rows.name(row, 0).map {
                NotifiedUser(
                    user: $0, phones: Int(rows.boundedInteger(row, 1) ?? 0), isKnown: rows.flag(row, 2),
                    isRepeated: rows.flag(row, 3))
            }
        }
    }

    /// Writes a notification into the outbox, from which every hub reads it.
    package func notify(_ notification: UserNotification) throws {
        _ = try connection.query(AppTokenSQL.notify, [String(decoding: notification.json, as: UTF8.self)])
    }
}

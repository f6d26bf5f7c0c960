package import Hub
package import Matching
package import Wire
import Workers

/// The notifications among changes: the users they name, the questions to `alerts.audience`, and the content for each user.
struct NotificationsAsked {
    private var notifications: [Int: UserNotification] = [:]

    /// - Parameter statement: `alerts.audience`.
    init(
        _ changes: [RowChange], _ statement: AudienceStatement, _ audience: inout AlertAudience,
        _ warnings: inout RateLimitedLog
    ) {
        for (index, change) in changes.enumerated() where change.isNotification {
            do throws(NotificationProblem) {
                let json = JSON(trusted: (change.record ?? Array("{}".utf8))[...])
                let notification = try UserNotification(json) { change.notificationID }
                if case .audience = notification.recipients, statement.isOfNobody {
                    throw NotificationProblem("It goes to an audience, and alerts.audience is not set.")
                }
                notifications[index] = notification
            } catch {
                audience.failed += 1
                warnings.logWarning("A notification of roost.notify is not sent. \(error.sentence)")
            }
        }
    }

    /// Whether any of them names users, about whom nothing is known yet.
    var nameUsers: Bool {
        notifications.values.contains { if case .users = $0.recipients { true } else { false } }
    }

    /// The questions to `alerts.audience`: rows that need not exist.
    var asked: [AudienceQuestion.Asked] {
        notifications.sorted { $0.key < $1.key }.compactMap { index, notification in
            guard case .audience(let audience) = notification.recipients else { return nil }
            let parts = audience.table.text.utf8.split(separator: UInt8(ascii: "."), maxSplits: 1).map {
                Name(Substring($0))
            }
            guard parts.count == 2 else { return nil }
            let row = RowChange(
                id: 0, table: Table(oid: 0, schema: parts[0], name: parts[1], columns: []), operation: .insert,
                commitTimestamp: "", record: audience.record, oldRecord: nil, isReduced: false)
            return AudienceQuestion.Asked(index: index, change: row, record: audience.record)
        }
    }

    /// Returns the candidates plus the users named by notifications, but without those of a notification that has too many.
    func withNamed(
        _ candidates: [AudienceQuery.Candidate], _ audience: inout AlertAudience, _ warnings: inout RateLimitedLog
    ) -> [AudienceQuery.Candidate] {
        guard !notifications.isEmpty else { return candidates }
        var all = candidates
        var counts: [Int: Int] = [:]
        for candidate in candidates where notifications[candidate.index] != nil {
            counts[candidate.index, default: 0] += 1
        }
        let excessive = Set(counts.filter { $0.value > UserNotification.mostUsers }.keys)
        if !excessive.isEmpty {
            audience.failed += excessive.count
            warnings.logWarning(
                "alerts.audience names more than \(UserNotification.mostUsers) users for a notification, which is not sent; send "
                    + "it to fewer at a time.")
            all.removeAll { excessive.contains($0.index) }
        }
        for (index, notification) in notifications.sorted(by: { $0.key < $1.key }) {
            guard case .users(let users) = notification.recipients else { continue }
            all += users.map { user in
                AudienceQuery.Candidate(
                    index: index, user: user, variables: [], isMuted: false, badge: nil, hasDevice: false,
                    isRegistered: false)
            }
        }
        return all
    }

    /// Returns the candidates who get a notification. The backend chooses them, so no policy is asked.
    func members(among candidates: [AudienceQuery.Candidate]) -> [AudienceMember] {
        candidates.compactMap { candidate in
            guard let notification = notifications[candidate.index] else { return nil }
            return AudienceMember(
                change: candidate.index, user: candidate.user,
                variables: notification.variables(badge: candidate.badge), isMuted: candidate.isMuted, badge: nil,
                hasDevice: candidate.hasDevice)
        }
    }
}

extension RowChange {
    /// The id of a notification.
    package var notificationID: Name {
        let text = record.flatMap { JSON(trusted: $0[...])["id"]?.string }
        // A notification written without roost.notify has no id: the change's number is the same at every hub.
        return Name(text ?? "#\(id)")
    }

    /// The key of a notification's alerts in the queue; no table's name has a colon before its point.
    package var notificationKey: Name { Name(UserNotification.keyPrefix + notificationID.text) }
}

extension UserNotification {
    package static let keyPrefix = "notify:"
    /// The variable of its alerts that holds the notification; no template can name it.
    package static let variable = "roost.notification"

    /// The key of its alerts in the queue.
    package var key: Name { Name(Self.keyPrefix + id.text) }

    /// Returns the variables stored with each of its alerts, as a JSON object.
    ///
    /// - Parameter badge: the user's, if the notification has none for all.
    func variables(badge: Int?) -> [UInt8] {
        JSONWriter.object { out in
            if let conversation = content.conversation { out.writeMember("conversation_id", conversation.text) }
            if let badge { out.writeMember("badge", badge) }
            out.writeMember(Self.variable, json: content.json)
        }
    }
}

import HTTP
import Hub
import Postgres
import Push
package import Stores
package import Wire

/// `POST /api/notify`: notifies users, and answers with the outcome. Confined to the worker's thread.
///
/// It writes the notification into the outbox, as `roost.notify()` does: all hubs read it from there, in its place among the rows, and
/// the queue of alerts ensures that it is sent once, or not at all.
final class NotificationSender {
    private let context: PushContext
    private var budget = NotificationBudget()
    private var written = WrittenNotifications()

    init(_ context: PushContext) { self.context = context }

    func answer(_ notification: UserNotification, _ store: PushStore) throws -> HTTPResponse {
        if let seconds = budget.secondsUntilFree(at: context.now.monotonic) {
            var refusal = HTTPResponse.pushProblem(
                429,
                "More than \(NotificationBudget.perSecond) users a second are notified by this hub; try again in \(seconds) s."
            )
            refusal.headers.append(("retry-after", String(seconds)))
            return refusal
        }
        do {
            _ = try context.rules.payload(of: notification.content, id: notification.id, badge: 0).fitted()
        } catch {
            return .pushProblem(400, "\(error)")
        }
        if case .audience = notification.recipients, context.rules.audience == nil {
            return .pushProblem(
                400, "alerts.audience is not set, so there is nobody to ask for an audience: name users.")
        }
        switch try store.recipients(of: notification, statement: context.rules.audience ?? AudienceStatement.ofNobody) {
        case .unanswered:
            budget.spend(0)
            return .pushProblem(503, "The database does not say in time who is meant; try again in a moment.")
        case .failed:
            budget.spend(0)
            return .pushProblem(
                400,
                "alerts.audience fails for this audience, or names more than \(UserNotification.mostUsers) users; the hub's log says which."
            )
        case .users(let users):
            budget.spend(users.count)
            return try send(notification, to: users, store)
        }
    }

    private func send(
        _ notification: UserNotification, to users: [PushStore.NotifiedUser], _ store: PushStore
    ) throws -> HTTPResponse {
        let now = context.now.monotonic
        let fates = users.map { user in
            NotificationFate(of: user, isWritten: written.contains(notification.id, to: user.user, at: now))
        }
        let reached = fates.filter(\.isQueued).map(\.user)
        if !reached.isEmpty {
            var notification = notification
            // Each member of an audience has a badge of its own.
            if case .users = notification.recipients { notification = notification.sent(to: reached) }
            do { try store.notify(notification) } catch let error as PostgresError
                where error.isOfTheValue && !store.isBroken
            {
                return .pushProblem(400, "Postgres does not take the notification: \(error.message).")
            }
            written.add(notification.id, to: reached, at: now)
        }
        return .push(202, NotificationFate.answer(to: notification.id, fates))
    }
}

/// The fate of a notification for one user, as far as its caller can be told.
package struct NotificationFate: Sendable, Equatable {
    package enum Status: String, Sendable {
        case queued, repeated, unknown
        case noPhone = "no_phone"
    }

    package let user: Name
    package let status: Status
    package let phones: Int

    /// - Parameter isWritten: whether it was written for this user a moment ago.
    package init(of user: PushStore.NotifiedUser, isWritten: Bool) {
        self.user = user.user
        phones = user.phones
        if user.isRepeated || isWritten {
            status = .repeated
        } else if user.phones > 0 {
            status = .queued
        } else {
            status = user.isKnown ? .noPhone : .unknown
        }
    }

    var isQueued: Bool { status == .queued }

    /// Builds the answer to the caller, as JSON.
    package static func answer(to id: Name, _ fates: [NotificationFate]) -> [UInt8] {
        JSONWriter.object { out in
            out.writeMember("id", id.text)
            out.array("users", fates) { out, fate in
                out.object {
                    $0.writeMember("userId", fate.user.text)
                    $0.writeMember("status", fate.status.rawValue)
                    if fate.isQueued { $0.writeMember("phones", fate.phones) }
                }
            }
        }
    }
}

extension PostgresError {
    /// Whether the statement was refused because of its values (class 22, Postgres, appendix A).
    fileprivate var isOfTheValue: Bool { kind == .server && sqlState?.hasPrefix("22") == true }
}

import HTTP
import Hub
import Postgres
import Push
import Stores
import Wire

/// `POST /api/notify`: has users notified, and answers what became of it. Confined to the worker's thread.
///
/// It writes the notification into the outbox, as `roost.notify()` does: all hubs read it from there, in its place among the rows, and
/// the queue of alerts sees to it that it is sent once, or not.
final class NotificationSender {
    private let context: PushContext
    private var budget = NotificationBudget()

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
        let reached = users.filter { $0.fate == .queued }.map(\.user)
        if !reached.isEmpty {
            var notification = notification
            // Of an audience each has a badge of its own.
            if case .users = notification.recipients { notification = notification.sent(to: reached) }
            do { try store.notify(notification) } catch let error as PostgresError
                where error.isOfTheValue && !store.isBroken
            {
                return .pushProblem(400, "Postgres does not take the notification: \(error.message).")
            }
        }
        return .push(
            202,
            JSONWriter.object { out in
                out.member("id", notification.id.text)
                out.array("users", users) { out, user in
                    out.object {
                        $0.member("userId", user.user.text)
                        $0.member("status", user.fate.rawValue)
                        if user.fate == .queued { $0.member("phones", user.phones) }
                    }
                }
            })
    }
}

extension PushStore.NotifiedUser {
    /// What becomes of the notification, as far as its caller can be told.
    fileprivate enum Fate: String {
        case queued, repeated, unknown
        case noPhone = "no_phone"
    }

    fileprivate var fate: Fate {
        if isRepeated { return .repeated }
        if phones > 0 { return .queued }
        return isKnown ? .noPhone : .unknown
    }
}

extension PostgresError {
    /// The statement was refused for what it was given (class 22, Postgres, appendix A).
    fileprivate var isOfTheValue: Bool { kind == .server && sqlState?.hasPrefix("22") == true }
}

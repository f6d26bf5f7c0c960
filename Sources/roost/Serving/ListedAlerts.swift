import Ops
import Stores

extension AlertTraceReader {
    /// Lists the newest alerts of a user or a message for the operator's page.
    func listAlerts(
        _ subject: AlertSubject, limit: Int,
        then reply: @escaping @Sendable (_ alerts: [ListedAlert], _ problem: String?) -> Void
    ) {
        let traced: AlertTrace.Subject =
            switch subject {
            case .user(let user): .user(user.text)
            case .message(let message): .message(message.text)
            }
        read(traced, limit: limit) { answer in
            switch answer {
            case .found(let entries): reply(entries.map(\.listed), nil)
            case .failed(let problem): reply([], problem)
            }
        }
    }
}

extension AlertTrace.Entry {
    fileprivate var listed: ListedAlert {
        ListedAlert(
            message: message.text, user: user.text, at: createdAt, outcome: outcome.words, outcomeTime: outcome.time,
            reason: explanation, phones: phones)
    }
}

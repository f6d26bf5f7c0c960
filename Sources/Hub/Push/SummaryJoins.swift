import Synchronization

/// Who has joined the channel of a Live Activity, and is to be shown its state: whoever knows the states asks.
///
/// One for all loops; safe from any thread, behind one lock that is held for an insertion.
package final class SummaryJoins: Sendable {
    package struct Join: Hashable, Sendable {
        package let activity: String
        package let user: String

        package init(activity: String, user: String) {
            self.activity = activity
            self.user = user
        }
    }

    private let joins = Mutex<Set<Join>>([])
    /// Beyond that, an app waits for the next state.
    private static let most = 10_000
    /// In bytes; no activity's id is longer, and topics may be.
    private static let longest = 200

    package init() {}

    func note(_ topic: String, by user: String?) {
        guard let user, let activity = ActivitySummary.activity(ofTopic: topic),
            activity.utf8.count <= Self.longest
        else { return }
        joins.withLock { joins in
            if joins.count < Self.most { joins.insert(Join(activity: activity, user: user)) }
        }
    }

    /// Those since the last call.
    package func takeAll() -> Set<Join> {
        joins.withLock { joins in
            defer { joins = [] }
            return joins
        }
    }
}

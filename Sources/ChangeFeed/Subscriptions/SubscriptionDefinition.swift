import Hub
import Matching
import Wire

/// The subscription shared by some groups, however many channels and loops they are on: equal bindings under the same role
/// are matched once.
final class SubscriptionDefinition {
    /// Its number in the index.
    let number: Int
    let bindings: [ChangeBinding]
    let ids: [Int]
    let role: Name
    /// The groups and their members.
    var groups: [ChangeGroupID: [Claims: Principal]] = [:]
    /// Bindings that took too long to decide, or were too many, with the message to their groups: these are not tried
    /// again.
    var ended: [Int: String] = [:]
    /// Nil until first bound.
    var outcome: ChangeSubscriptionOutcome?

    init(number: Int, bindings: [ChangeBinding], ids: [Int], role: Name) {
        self.number = number
        self.bindings = bindings
        self.ids = ids
        self.role = role
    }

    /// Number of tokens it serves.
    var memberCount: Int { groups.values.reduce(0) { $0 + max(1, $1.count) } }

    /// True if a served binding includes the table.
    func coversTable(_ table: Table) -> Bool {
        zip(ids, bindings).contains { id, binding in
            guard ended[id] == nil, case .success(let parameters) = binding.parameters else { return false }
            return parameters.tables.includes(table)
        }
    }

    /// The outcome for its groups after one of its bindings ended, or several.
    ///
    /// - Parameter binding: a binding that ended but may be tried again, so that `ended` lacks it.
    func addComplaint(_ message: String, besides binding: Int? = nil) -> ChangeSubscriptionOutcome {
        let isServed = ids.contains { $0 != binding && ended[$0] == nil }
        let complaint = SubscriptionComplaint(message, isError: true)
        let now: ChangeSubscriptionOutcome
        switch outcome {
        case .live where isServed: now = .partly([complaint])
        case .partly(let earlier) where isServed: now = .partly(earlier + [complaint])
        default: now = .failed(message)
        }
        outcome = now
        return now
    }

    struct Key: Hashable {
        let bindings: [ChangeBinding]
        let role: Name
    }

    var key: Key { Key(bindings: bindings, role: role) }
}

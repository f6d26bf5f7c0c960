import Hub
import Matching

/// What some groups of subscribers want, however many channels and loops they are on: the same bindings under the same
/// role are matched once.
final class SubscriptionDefinition {
    /// Its number in the index.
    let number: Int
    let bindings: [ChangeBinding]
    let ids: [Int]
    let role: String
    /// The groups, and who is in each.
    var groups: [ChangeGroupID: [Claims: Principal]] = [:]
    /// Bindings that took too long to decide, and what their groups were told: for them there is no other try.
    var ended: [Int: String] = [:]
    /// Nil until it was bound for the first time.
    var outcome: ChangeSubscriptionOutcome?

    init(number: Int, bindings: [ChangeBinding], ids: [Int], role: String) {
        self.number = number
        self.bindings = bindings
        self.ids = ids
        self.role = role
    }

    struct Key: Hashable {
        let bindings: [ChangeBinding]
        let role: String
    }

    var key: Key { Key(bindings: bindings, role: role) }
}

package import Matching

/// What a group of subscribers wants to hear from the change feed.
package struct ChangeSubscription: Sendable {
    package let role: String
    package let bindings: [ChangeBinding]
    /// The id of each binding, as the subscribers were told.
    package let ids: [Int]
    /// Joined without a config, as clients of old did: the topic names the table, and events carry the change itself.
    package let isLegacy: Bool
    /// Conditions that compare with a pattern.
    let patterns: Int

    package init(role: String, bindings: [ChangeBinding], ids: [Int], isLegacy: Bool = false) {
        self.role = role
        self.bindings = bindings
        self.ids = ids
        self.isLegacy = isLegacy
        patterns = bindings.reduce(0) { $0 + $1.patterns }
    }

    func isSame(as other: ChangeSubscription) -> Bool {
        role == other.role && isLegacy == other.isLegacy && bindings == other.bindings
    }
}

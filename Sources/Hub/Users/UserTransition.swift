/// A user came online or went offline.
package struct UserTransition: Sendable, Equatable {
    /// The claim `sub`.
    package let user: String
    package let isOnline: Bool
    /// When, in milliseconds since 1970: for one who went, when the last socket was heard of, not when its window ended.
    package let at: Int64

    package init(user: String, isOnline: Bool, at: Int64) {
        self.user = user
        self.isOnline = isOnline
        self.at = at
    }
}

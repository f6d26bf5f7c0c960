package import Wire

/// A connection as the hub has it, for an operator to look at.
package struct ConnectionView: Sendable {
    package struct Membership: Sendable {
        package let key: ChannelKey
        /// Its join is answered.
        package let isJoined: Bool
        package let user: String?
        package let presenceKey: String
        package let isPresent: Bool
        /// Entries of `postgres_changes`.
        package let changes: Int
    }

    package let version: ProtocolVersion
    /// By the token at the door, or else by the first join that names one.
    package let user: String?
    package let role: String
    package let appState: AppState?
    package let memberships: [Membership]
}

/// A channel as one loop has it, for an operator to look at.
package struct ChannelView: Sendable {
    package struct Member: Sendable {
        package let slot: Slot
        package let user: String?
        package let role: String
        package let presenceKey: String
        package let isPresent: Bool
        /// Entries of `postgres_changes`.
        package let changes: Int
    }

    package struct Present: Sendable {
        package let key: String
        package let excerpt: String
    }

    package let key: ChannelKey
    package let sockets: Int
    /// The first of them.
    package let members: [Member]
    package let presentCount: Int
    /// The first of them.
    package let present: [Present]
    package let typing: Int
    /// From when somebody began to look.
    package let events: [ChannelEvent]
}

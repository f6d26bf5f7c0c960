/// Somebody who is to hear of a change while away, and may see its row.
package struct AudienceMember: Sendable, Equatable {
    /// The change's index among those that were asked about.
    package let change: Int
    /// The claim `sub`.
    package let user: String
    /// All columns that the audience statement returned for this user but `row`, as a JSON object.
    package let variables: [UInt8]
    /// The user has muted the conversation.
    package let isMuted: Bool
    /// How many messages are unread, where the statement says so.
    package let badge: Int?
    /// A token for alerts is registered; otherwise there are only activities.
    package let hasDevice: Bool
}

/// The answer to who is to hear of some changes.
package struct AlertAudience: Sendable, Equatable {
    package internal(set) var members: [AudienceMember] = []
    /// Indices of changes whose audience could not be found out for a reason that passes, such as a lock or a deadline:
    /// ask again later, but not for ever.
    package internal(set) var unanswered: [Int] = []
    /// How many changes the statement fails for whatever the moment, so that they have no audience; the log says why.
    package internal(set) var failed = 0

    init() {}
}

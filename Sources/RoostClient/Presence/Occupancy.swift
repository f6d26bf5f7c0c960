/// How many are in a channel, without their names.
public struct Occupancy: Sendable, Equatable {
    /// Clients.
    public let members: Int
    /// Presence keys: users, where the key is the user.
    public let keys: Int
}

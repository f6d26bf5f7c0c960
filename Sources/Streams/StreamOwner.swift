package import Wire

/// The creator of a stream, whose share of the room it takes.
package enum StreamOwner: Sendable, Hashable {
    /// A token's `sub`.
    case user(Name)
    /// A role whose tokens name no user: all clients with it are one owner.
    case role(Name)
}

package import Wire

/// Who made a stream, and whose share of the room it takes.
package enum StreamOwner: Sendable, Hashable {
    /// A token's `sub`.
    case user(Name)
    /// A role whose tokens name no user: all who have it are one owner.
    case role(Name)
}

/// Who made a stream, and whose share of the room it takes. Compared byte by byte, as tokens and policies do.
package enum StreamOwner: Sendable, Hashable {
    /// A token's `sub`.
    case user([UInt8])
    /// A role whose tokens name no user: all who have it are one owner.
    case role([UInt8])

    package static func user(_ subject: String) -> Self { .user(Array(subject.utf8)) }
    package static func role(_ name: String) -> Self { .role(Array(name.utf8)) }
}

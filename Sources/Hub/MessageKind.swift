import Wire

/// The kind of a member's message. `RawRepresentable` by its event.
enum MessageKind: String, Sendable {
    /// Includes writes to a stream, in its channel.
    case broadcast
    case presence
    case appState = "app_state"

    /// Whether the member expects an answer. Without a ref, an answer could not be matched to the message; to a
    /// broadcast, clients expect one if they joined with `ack`, as with the original. Members were already told that
    /// their token has expired, and an error stops supabase-kt from reading: their other messages meanwhile are not
    /// answered.
    func isAnswered(_ membership: Membership, _ ref: JSON) -> Bool {
        if ref.isNull { return false }
        return self == .broadcast ? membership.acknowledges : membership.lapse == nil
    }
}

import Wire

/// What kind of message of a member it is. `RawRepresentable` by the event that it came as.
enum MessageKind: String, Sendable {
    /// Also what is written to a stream, in its channel.
    case broadcast
    case presence
    case appState = "app_state"

    /// Whether the member waits for an answer. One without a ref could not be matched to what was sent; to a broadcast, clients expect
    /// one if they joined with `ack`, as from the original. That their token has run out members were told already, and an error stops
    /// supabase-kt from reading: whatever else it sends meanwhile is not answered.
    func isAnswered(_ membership: Membership, _ ref: JSON) -> Bool {
        if ref.isNull { return false }
        return self == .broadcast ? membership.acknowledges : membership.lapse == nil
    }
}

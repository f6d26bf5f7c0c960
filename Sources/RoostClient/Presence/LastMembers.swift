import Synchronization

/// What a presence sequence told its consumer last: what is different is counted from there, so nothing is left out
/// where several changes came at once.
final class LastMembers: Sendable {
    private let members = Mutex<[String: [PresenceMember]]>([:])

    @Sendable
    func update(_ now: [String: [PresenceMember]]) -> PresenceUpdate {
        members.withLock { last in
            defer { last = now }
            return PresenceUpdate(now, since: last)
        }
    }
}

/// Who is in a channel, and what is different from the update before.
public struct PresenceUpdate: Sendable, Equatable {
    /// By presence key.
    public let members: [String: [PresenceMember]]
    /// Keys that were not there.
    public let joined: [String]
    /// Keys that are not there any more.
    public let left: [String]
    /// Keys whose payloads or clients are others.
    public let changed: [String]

    package init(_ members: [String: [PresenceMember]], since before: [String: [PresenceMember]]) {
        self.members = members
        joined = members.keys.filter { before[$0] == nil }.sorted()
        left = before.keys.filter { members[$0] == nil }.sorted()
        changed = members.keys.filter { key in before[key].map { $0 != members[key] } ?? false }.sorted()
    }
}

public import Foundation
import Synchronization
package import Wire

/// The members of a channel, and the differences from the previous update.
public struct PresenceUpdate: Sendable, Equatable {
    /// The members by presence key.
    public let members: [String: [PresenceMember]]
    /// Keys that were not present before.
    public let joined: [String]
    /// Keys that are not present any more.
    public let left: [String]
    /// Keys that were present before and have other payloads or clients now.
    public let changed: [String]

    package init(_ members: [String: [PresenceMember]], since before: [String: [PresenceMember]]) {
        self.members = members
        joined = members.keys.filter { before[$0] == nil }.sorted()
        left = before.keys.filter { members[$0] == nil }.sorted()
        changed = members.keys.filter { key in before[key].map { $0 != members[key] } ?? false }.sorted()
    }
}

/// One client (a tab, a phone) under a presence key.
public struct PresenceMember: Sendable, Equatable {
    /// The hub's reference for this presence (`phx_ref`). It changes with each change of the payload.
    public let ref: String
    /// The client's payload as the text of a JSON object, including the hub's `phx_ref`.
    public let json: Data

    /// Decodes the client's payload.
    public func decode<Payload: Decodable>(
        as type: Payload.Type, decoder: JSONDecoder = .roost
    ) throws(RoostError) -> Payload {
        try decoder.roostDecode(type, from: json)
    }
}

/// The number of members of a channel, without their names.
public struct Occupancy: Sendable, Equatable {
    /// The number of clients: each tab and each phone counts.
    public let members: Int
    /// The number of presence keys, which is that of users if the key is the user.
    public let keys: Int
}

/// The members of a channel, from `presence_state` and `presence_diff` (wire-protocol A6).
///
/// When the channel is lost, the map stays for the grace window until the next `presence_state` replaces it. So a loss
/// within the window changes nothing unless members came or went in the meantime.
package struct PresenceMap {
    package private(set) var members: [String: [PresenceMember]] = [:]
    /// True once a state has arrived since the last join. Earlier diffs are about a state that is not known yet.
    private var isLive = false
    /// Diffs that arrived before their state.
    private var early: [JSON] = []
    private var staleUntil: Moment?

    /// True once any state has arrived, so that there is something to show.
    package private(set) var isKnown = false
    /// The time at which `expireStale` empties the map; nil while the channel is not lost.
    package var nextDeadline: Moment? { staleUntil }

    package init() {}

    /// Applies a `presence_state`.
    ///
    /// - Returns: whether there is something new to show.
    package mutating func applyState(_ payload: JSON) -> Bool {
        let wasKnown = isKnown
        let before = members
        members = Self.parseMembers(payload)
        isLive = true
        isKnown = true
        staleUntil = nil
        let diffs = early
        early = []
        for diff in diffs { mergeDiff(diff) }
        return members != before || !wasKnown
    }

    /// Applies a `presence_diff`.
    ///
    /// - Returns: whether the members have changed.
    package mutating func applyDiff(_ payload: JSON) -> Bool {
        guard isLive else {
            // The state always follows, but a hub that sends none must not make this list grow forever.
            if early.count < 1024 { early.append(payload) }
            return false
        }
        let before = members
        mergeDiff(payload)
        return members != before
    }

    /// Notes the loss of the channel: the map remains for `window` at most.
    package mutating func channelLost(at now: Moment, window: Duration) {
        guard isLive else { return }
        isLive = false
        early = []
        staleUntil = now + window
    }

    /// Empties the map when its time is over.
    ///
    /// - Returns: whether the members have changed.
    package mutating func expireStale(_ now: Moment) -> Bool {
        guard let staleUntil, staleUntil <= now else { return false }
        self.staleUntil = nil
        let had = !members.isEmpty
        members = [:]
        return had
    }

    private mutating func mergeDiff(_ payload: JSON) {
        if let joins = payload["joins"] {
            for (key, joined) in Self.parseMembers(joins) {
                let gone = Set(joined.map(\.ref))
                members[key] = (members[key] ?? []).filter { !gone.contains($0.ref) } + joined
            }
        }
        guard let leaves = payload["leaves"] else { return }
        for (key, left) in Self.parseMembers(leaves) {
            let gone = Set(left.map(\.ref))
            let rest = (members[key] ?? []).filter { !gone.contains($0.ref) }
            members[key] = rest.isEmpty ? nil : rest
        }
    }

    private static func parseMembers(_ json: JSON) -> [String: [PresenceMember]] {
        var all: [String: [PresenceMember]] = [:]
        json.forEachMember { member in
            let metas = member.value["metas"]?.elements ?? []
            all[member.key] = metas.map { meta in
                PresenceMember(ref: meta["phx_ref"]?.string ?? "", json: Data(meta.bytes))
            }
        }
        return all
    }
}

/// Computes the differences since the last update of one consumer, so that nothing is omitted when several changes
/// arrive at once.
final class PresenceDifferences: Sendable {
    private let members = Mutex<[String: [PresenceMember]]>([:])

    @Sendable
    /// The update for this state, which becomes the base of the next one.
    func makeUpdate(_ now: [String: [PresenceMember]]) -> PresenceUpdate {
        members.withLock { last in
            defer { last = now }
            return PresenceUpdate(now, since: last)
        }
    }
}

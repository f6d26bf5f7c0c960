public import Foundation
import Synchronization
package import Wire

/// Who is in a channel, and what is different from the update before.
public struct PresenceUpdate: Sendable, Equatable {
    /// The members of each presence key.
    public let members: [String: [PresenceMember]]
    /// Keys that were not there before.
    public let joined: [String]
    /// Keys that are not there any more.
    public let left: [String]
    /// Keys that were there before and have other payloads or clients now.
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
    /// The hub's name for this presence (`phx_ref`). Each change of the payload gives it a new one.
    public let ref: String
    /// What the client tracks, as the text of a JSON object, with the hub's `phx_ref` in it.
    public let json: Data

    /// Reads what the client tracks.
    public func decode<Payload: Decodable>(
        as type: Payload.Type, decoder: JSONDecoder = .roost
    ) throws(RoostError) -> Payload {
        try decoder.roostDecode(type, from: json)
    }
}

/// How many are in a channel, without their names.
public struct Occupancy: Sendable, Equatable {
    /// How many clients: each tab and each phone counts.
    public let members: Int
    /// How many presence keys: users, where the key is the user.
    public let keys: Int
}

/// Who is in a channel, from `presence_state` and `presence_diff` (wire-protocol A6).
///
/// When the channel is lost the map stays as it is for the grace window, and the next `presence_state` takes its place.
/// So a loss inside the window changes nothing unless somebody came or went meanwhile.
package struct PresenceMap {
    package private(set) var members: [String: [PresenceMember]] = [:]
    /// A state has arrived since the last join. Diffs before it are about a state that is not known yet.
    private var isLive = false
    /// Diffs that came before their state.
    private var early: [JSON] = []
    private var staleUntil: Moment?

    /// Whether a state has ever arrived, so that there is something to show.
    package private(set) var isKnown = false
    /// When `tick` empties the map; nil while the channel is not lost.
    package var nextDeadline: Moment? { staleUntil }

    package init() {}

    /// Takes a `presence_state`.
    ///
    /// - Returns: whether there is something new to show.
    package mutating func state(_ payload: JSON) -> Bool {
        let wasKnown = isKnown
        let before = members
        members = Self.members(payload)
        isLive = true
        isKnown = true
        staleUntil = nil
        let diffs = early
        early = []
        for diff in diffs { apply(diff) }
        return members != before || !wasKnown
    }

    /// Takes a `presence_diff`.
    ///
    /// - Returns: whether the members are others now.
    package mutating func diff(_ payload: JSON) -> Bool {
        guard isLive else {
            // The state always comes; a hub that sends none must not make us keep its diffs forever.
            if early.count < 1024 { early.append(payload) }
            return false
        }
        let before = members
        apply(payload)
        return members != before
    }

    /// The channel is lost: from now on the map is shown for `window` at most.
    package mutating func lost(at now: Moment, window: Duration) {
        guard isLive else { return }
        isLive = false
        early = []
        staleUntil = now + window
    }

    /// Empties the map when its time is over.
    ///
    /// - Returns: whether the members are others now.
    package mutating func tick(_ now: Moment) -> Bool {
        guard let staleUntil, staleUntil <= now else { return false }
        self.staleUntil = nil
        let had = !members.isEmpty
        members = [:]
        return had
    }

    private mutating func apply(_ payload: JSON) {
        if let joins = payload["joins"] {
            for (key, joined) in Self.members(joins) {
                let gone = Set(joined.map(\.ref))
                members[key] = (members[key] ?? []).filter { !gone.contains($0.ref) } + joined
            }
        }
        guard let leaves = payload["leaves"] else { return }
        for (key, left) in Self.members(leaves) {
            let gone = Set(left.map(\.ref))
            let rest = (members[key] ?? []).filter { !gone.contains($0.ref) }
            members[key] = rest.isEmpty ? nil : rest
        }
    }

    private static func members(_ json: JSON) -> [String: [PresenceMember]] {
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

/// Finds what is different since the last update that one consumer got, so that nothing is left out when several changes
/// come at once.
final class PresenceDifferences: Sendable {
    private let members = Mutex<[String: [PresenceMember]]>([:])

    @Sendable
    /// The update for this state; the next one is counted from here.
    func update(_ now: [String: [PresenceMember]]) -> PresenceUpdate {
        members.withLock { last in
            defer { last = now }
            return PresenceUpdate(now, since: last)
        }
    }
}

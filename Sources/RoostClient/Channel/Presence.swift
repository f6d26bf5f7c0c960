public import Foundation
import Synchronization
package import Wire

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

/// One client (a tab, a phone) under a presence key.
public struct PresenceMember: Sendable, Equatable {
    /// The hub's name for this presence; another after each change of its payload.
    public let ref: String
    /// What the client tracks, as the text of a JSON object; with the hub's `phx_ref` in it.
    public let json: Data

    /// What the client tracks.
    public func decode<Payload: Decodable>(
        as type: Payload.Type, decoder: JSONDecoder = .roost
    ) throws(RoostError) -> Payload {
        try decoder.roostDecode(type, from: json)
    }
}

/// How many are in a channel, without their names.
public struct Occupancy: Sendable, Equatable {
    /// Clients.
    public let members: Int
    /// Presence keys: users, where the key is the user.
    public let keys: Int
}

/// Who is in a channel, from `presence_state` and `presence_diff` (wire-protocol A6).
///
/// On a loss the map stays for the grace window; the next `presence_state` takes its place. So a loss inside the window
/// that nobody used to come or go changes nothing.
package struct PresenceMap {
    package private(set) var members: [String: [PresenceMember]] = [:]
    /// A state has arrived since the last join; diffs before it are about a state that is not known.
    private var isLive = false
    private var early: [JSON] = []
    private var staleUntil: Moment?

    /// There is something to show.
    package private(set) var isKnown = false
    package var nextDeadline: Moment? { staleUntil }

    package init() {}

    /// Returns whether the members are others now.
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

    /// The channel is lost; the map is good for `window` more.
    package mutating func lost(at now: Moment, window: Duration) {
        guard isLive else { return }
        isLive = false
        early = []
        staleUntil = now + window
    }

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

/// What a presence sequence told its consumer last: what is different is counted from there, so nothing is left out
/// where several changes came at once.
final class PresenceDifferences: Sendable {
    private let members = Mutex<[String: [PresenceMember]]>([:])

    @Sendable
    func update(_ now: [String: [PresenceMember]]) -> PresenceUpdate {
        members.withLock { last in
            defer { last = now }
            return PresenceUpdate(now, since: last)
        }
    }
}

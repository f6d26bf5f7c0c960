import Foundation
package import Wire

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

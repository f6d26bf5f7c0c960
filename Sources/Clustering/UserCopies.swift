import Cluster
import Wire

/// Whose users' counts are known here, and of whom they are to be asked: all of a hub's when it comes and where messages of it are
/// missing, in parts, one after the other. Every later change comes by the log.
///
/// Pure; confined to the thread of the cluster's worker.
struct UserCopies {
    /// The users of a hub are as many parts, so that an answer with those of half a million users is none that is too large.
    static let parts = 16

    private struct Copy {
        /// The next to be asked for.
        var part = 0
        var isAsked = false
    }

    private var incomplete: [HubIdentity: Copy] = [:]

    mutating func joined(_ hub: HubIdentity) { incomplete[hub] = Copy() }
    mutating func gone(_ hub: HubIdentity) { incomplete[hub] = nil }

    /// Messages are missing, and nobody knows which: what hubs said may be none of it.
    mutating func isGap(_ hubs: [HubIdentity]) {
        for hub in hubs { incomplete[hub] = Copy() }
    }

    /// What is to be asked now.
    mutating func next() -> [(hub: HubIdentity, part: Int)] {
        var all: [(hub: HubIdentity, part: Int)] = []
        for (hub, copy) in incomplete where !copy.isAsked {
            incomplete[hub]?.isAsked = true
            all.append((hub, copy.part))
        }
        return all
    }

    /// - Parameter isKnown: false where there was no answer: it is asked for again.
    /// - Returns: whether this was asked for and counts.
    mutating func answered(_ hub: HubIdentity, part: Int, isKnown: Bool) -> Bool {
        guard let copy = incomplete[hub] else { return false }
        incomplete[hub]?.isAsked = false
        // It has begun anew meanwhile.
        guard copy.part == part, isKnown else { return false }
        incomplete[hub] = part + 1 < Self.parts ? Copy(part: part + 1) : nil
        return true
    }

    static func part(of user: Name) -> Int {
        var hash = FixedHash()
        hash.combine(user.utf8)
        return Int(hash.value % UInt64(parts))
    }
}

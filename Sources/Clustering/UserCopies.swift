import Cluster
import Wire

/// Tracks which hubs' user counts are complete here, and which parts to request: all of them when a hub joins and when
/// its messages were missed, one part after the other. Later changes arrive through the log.
///
/// Pure; confined to the thread of the cluster's worker.
struct UserCopies {
    /// Each hub's users are divided into this many parts, so that an answer stays small enough even for half a million users.
    static let parts = 16

    private struct Copy {
        /// The next part to request.
        var part = 0
        var isAsked = false
    }

    private var incomplete: [HubIdentity: Copy] = [:]

    mutating func startCopy(_ hub: HubIdentity) { incomplete[hub] = Copy() }
    mutating func removeCopy(_ hub: HubIdentity) { incomplete[hub] = nil }

    /// Messages are missing, and it is unknown which: they may include any hub's counts.
    mutating func restartCopies(_ hubs: [HubIdentity]) {
        for hub in hubs { incomplete[hub] = Copy() }
    }

    /// The parts to request now.
    mutating func nextQuestions() -> [(hub: HubIdentity, part: Int)] {
        var all: [(hub: HubIdentity, part: Int)] = []
        for (hub, copy) in incomplete where !copy.isAsked {
            incomplete[hub]?.isAsked = true
            all.append((hub, copy.part))
        }
        return all
    }

    /// - Parameter isKnown: false if there was no answer: the part is requested again.
    /// - Returns: whether the answer was expected and counts.
    mutating func receiveAnswer(_ hub: HubIdentity, part: Int, isKnown: Bool) -> Bool {
        guard let copy = incomplete[hub] else { return false }
        incomplete[hub]?.isAsked = false
        // The copy was restarted meanwhile.
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

/// A connection of the clients' port, from when it is accepted: whom it comes from, and what it is counted for. Whoever holds the
/// connection holds this, and gives the count back by `Admission.depart`.
package struct Arrival {
    /// Nil for a Unix domain socket, for a peer that is gone, and for a proxy that speaks for nobody now.
    package internal(set) var address: IPAddress?
    /// It comes by a proxy, which says with each request for whom.
    package let isProxied: Bool
    /// It is in this address' count.
    var counted: PeerAddress?
    /// Its address has more connections than it may: whatever it asks for is refused.
    var isOver = false

    var source: PeerAddress? { address.map { PeerAddress($0) } }
}

/// The connections of the clients' port that are no WebSocket and no answer that goes on.
///
/// The kernel gives a connection the lowest descriptor that is free, so its number tells how many are in use, by whatever part of the
/// process.
package struct DescriptorRoom: Sendable {
    /// The process' limit of open files.
    private let limit: Int32

    /// Descriptors that are left when connections begin to make room for others. Fewer than `OpenFiles` keeps from WebSockets: where
    /// these take all that they may, there still is room to hear and refuse others.
    private static let short: Int32 = 96
    /// Those that are left to Postgres, files and the operator's port.
    private static let kept: Int32 = 64

    package init(limit: Int) { self.limit = Int32(clamping: limit) }

    /// Another connection has to end for this one.
    package func isShort(at descriptor: Int32) -> Bool { descriptor >= max(limit - Self.short, limit / 2) }

    /// This one cannot stay where no other one ends.
    package func isUsedUp(at descriptor: Int32) -> Bool { descriptor >= max(limit - Self.kept, limit / 2) }
}

/// Which connections end when descriptors run short: they are of whoever has the most, so that one who opens many keeps nobody out.
package enum Displacement {
    package struct Candidate {
        /// In its server's list.
        package let place: Int
        package let source: PeerAddress?
        /// Nothing of a request has come.
        package let isIdle: Bool
        /// Seconds of the loop.
        package let since: Int32

        package init(place: Int, source: PeerAddress?, isIdle: Bool, since: Int32) {
            self.place = place
            self.source = source
            self.isIdle = isIdle
            self.since = since
        }
    }

    /// Seconds in which a new connection may say nothing and is not idle yet.
    static let grace: Int32 = 2

    /// The share of an address' idle connections that end at once: who has many is not gone through for each new one.
    private static let share = 16

    /// - Parameter newcomer: for whom room is made; it is not among the candidates.
    /// - Returns: their places; empty where the newcomer is the one to go.
    package static func choose(among candidates: [Candidate], for newcomer: PeerAddress?) -> [Int] {
        var counts: [PeerAddress: Int] = [:]
        for candidate in candidates { if let source = candidate.source { counts[source, default: 0] += 1 } }
        let own = newcomer.flatMap { counts[$0] } ?? 0
        if let (most, count) = counts.max(by: { $0.value < $1.value }), count > own || most == newcomer && count > 1 {
            let theirs = candidates.filter { $0.source == most }.sorted { $0.since < $1.since }
            let idle = theirs.filter(\.isIdle)
            if !idle.isEmpty { return idle.prefix(max(1, count / share)).map(\.place) }
            // Of its own requests none ends for one more.
            if most != newcomer, let eldest = theirs.first, count > own + 1 { return [eldest.place] }
        }
        return candidates.filter(\.isIdle).min { $0.since < $1.since }.map { [$0.place] } ?? []
    }
}

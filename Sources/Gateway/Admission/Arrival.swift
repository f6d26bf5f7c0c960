/// A connection on the clients' port, from its acceptance on: its source, and the count that includes it. The owner of
/// the connection owns this, and undoes the count by `Admission.depart`.
package struct Arrival {
    /// Nil for a Unix domain socket, for a peer that is gone, and for a proxy without a current request.
    package internal(set) var address: IPAddress?
    /// The connection comes from a proxy, which names its client with each request.
    package let isProxied: Bool
    /// The address whose count includes this connection.
    var counted: PeerAddress?
    /// The address has more connections than allowed, so every request is refused.
    var isOver = false

    var source: PeerAddress? { address.map { PeerAddress($0) } }
}

/// The descriptors available for clients' connections that are neither WebSockets nor streaming answers.
///
/// The kernel assigns the lowest free descriptor, so a connection's number shows how many are in use by the whole
/// process.
package struct DescriptorRoom: Sendable {
    /// The process's limit on open files.
    private let limit: Int32

    /// Descriptors left when connections begin to make room for others. Fewer than `OpenFiles` reserves from
    /// WebSockets: when those use all that they may, there is still room to accept and refuse other connections.
    private static let short: Int32 = 96
    /// Descriptors reserved for Postgres, files and the operator's port.
    private static let kept: Int32 = 64

    package init(limit: Int) { self.limit = Int32(clamping: limit) }

    /// Whether another connection must end for this one.
    package func isShort(at descriptor: Int32) -> Bool { descriptor >= max(limit - Self.short, limit / 2) }

    /// Whether this connection must close if no other can end.
    package func isUsedUp(at descriptor: Int32) -> Bool { descriptor >= max(limit - Self.kept, limit / 2) }
}

/// Chooses the connections to end when descriptors run short: those of the address that has the most, so that one
/// client with many connections cannot keep others out.
package enum Displacement {
    package struct Candidate {
        /// The index in its server's list.
        package let place: Int
        package let source: PeerAddress?
        /// True before the first byte of a request.
        package let isIdle: Bool
        /// Seconds on the loop's clock.
        package let since: Int32

        package init(place: Int, source: PeerAddress?, isIdle: Bool, since: Int32) {
            self.place = place
            self.source = source
            self.isIdle = isIdle
            self.since = since
        }
    }

    /// Seconds before a new, silent connection counts as idle.
    static let grace: Int32 = 2

    /// The share of an address's idle connections that end at once, so that a long list is not searched for each new
    /// connection.
    private static let share = 16

    /// - Parameter newcomer: the connection that needs room; it is not among the candidates.
    /// - Returns: the places of the chosen ones; empty if the newcomer must go.
    package static func choose(among candidates: [Candidate], for newcomer: PeerAddress?) -> [Int] {
        var counts: [PeerAddress: Int] = [:]
        for candidate in candidates { if let source = candidate.source { counts[source, default: 0] += 1 } }
        let own = newcomer.flatMap { counts[$0] } ?? 0
        if let (most, count) = counts.max(by: { $0.value < $1.value }), count > own || most == newcomer && count > 1 {
            let theirs = candidates.filter { $0.source == most }.sorted { $0.since < $1.since }
            let idle = theirs.filter(\.isIdle)
            if !idle.isEmpty { return idle.prefix(max(1, count / share)).map(\.place) }
            // An address's own requests do not end for another one of its own.
            if most != newcomer, let eldest = theirs.first, count > own + 1 { return [eldest.place] }
        }
        return candidates.filter(\.isIdle).min { $0.since < $1.since }.map { [$0.place] } ?? []
    }
}

package import Hub
package import Logging

/// The clients of a hub, one for each configured kind of service. Kinds share nothing: while one service is away, or its queue is full,
/// the others go on.
package final class PushClients: Sendable {
    private let clients: [PushKind: PushClient]

    /// - Parameter whenDone: called on the clients' threads, for many at once; must not wait, and not stop a client.
    package init(
        _ services: [PushServiceConfiguration], logger: Logger,
        whenDone: @escaping @Sendable ([(Push, PushOutcome)]) -> Void
    ) {
        clients = Dictionary(
            services.map { ($0.kind, PushClient($0, logger: logger, whenDone: whenDone)) }, uniquingKeysWith: { $1 })
    }

    /// The kinds of service in use.
    package var kinds: Set<PushKind> { Set(clients.keys) }

    package func start() {
        for client in clients.values { client.start() }
    }

    /// Waits for the answers to requests that have left, for this long at most in all, and reports the rest as `.stopped` or
    /// `.unanswered`.
    package func stop(within limit: Duration) {
        // All clients are told before waiting for the first.
        for client in clients.values { client.requestStop(within: limit) }
        for client in clients.values { client.stop(within: limit) }
    }

    /// Takes notifications to send. Each gets exactly one outcome.
    ///
    /// - Returns: those whose kind is not configured; they get no outcome.
    package func send(_ pushes: [Push]) -> [Push] {
        guard let first = pushes.first else { return [] }
        if pushes.allSatisfy({ $0.kind == first.kind }), let client = clients[first.kind] {
            client.send(pushes)
            return []
        }
        var rest: [Push] = []
        for (kind, pushes) in Dictionary(grouping: pushes, by: \.kind) {
            if let client = clients[kind] { client.send(pushes) } else { rest += pushes }
        }
        return rest
    }

    /// Returns the number of notifications of a kind that can still be taken.
    package func room(for kind: PushKind) -> Int { clients[kind]?.room ?? 0 }

    /// The clients' counters; at most 30 s old.
    package var statistics: [PushKind: PushStatistics] { clients.mapValues(\.statistics) }
}

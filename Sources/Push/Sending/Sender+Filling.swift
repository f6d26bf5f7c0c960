import Hub
import Logging

extension Sender {
    /// Sends what may be sent there.
    mutating func fill(_ server: ServerName, at now: HubTime) {
        while var pool = pools[server], queue.hasReady(for: server), !isStopping {
            if let reason = pool.circuit.reason, !rules.waitsWhenKeyIsRefused {
                return refuseAll(server, reason)
            }
            guard pool.maySend(at: now.monotonic) else { return }
            guard let connection = pool.place(rules.inFlight, limit: transport.limit) else {
                if pool.wantsConnection(rules.connections, at: now.monotonic) { connect(server, at: now) }
                return
            }
            guard let token = token(at: now), let (ticket, entry) = queue.take(for: server) else { return }
            guard transport.post(entry.push, ticket, with: token, on: connection) else {
                queue.putBack(ticket, notBefore: nil, at: now)
                pools[server]?.links[connection]?.state = .retired
                continue
            }
            if pool.circuit.isOpen { pool.circuit.probed(at: now.monotonic) }
            if pool.links[connection]?.inFlight == 0 { pool.links[connection]?.owed = now.monotonic }
            pool.links[connection]?.inFlight += 1
            pools[server] = pool
            flights[ticket] = Flight(
                connection: connection, server: server, sent: now.monotonic, generation: token.generation)
            departures.append((ticket, now.monotonic))
        }
    }

    private mutating func connect(_ server: ServerName, at now: HubTime) {
        guard let connection = transport.open(to: server) else {
            return failToConnect(server, "the URL cannot be used", at: now)
        }
        servers[connection] = server
        pools[server]?.links[connection] = Link(at: now.monotonic)
    }

    /// It never came to be, or came to nothing.
    mutating func failToConnect(_ server: ServerName, _ why: String, at now: HubTime) {
        guard var pool = pools[server] else { return }
        pool.failures += 1
        pool.connectAfter = now.monotonic + Backoff.connecting.delay(after: pool.failures, using: &random)
        pools[server] = pool
        counts.connectionFailures += 1
        // Once, not with every attempt.
        guard pool.failures == 1 else { return }
        notices.append(Notice(level: .warning, text: "APNs (\(server)) cannot be reached: \(why). Trying on."))
    }

    private mutating func refuseAll(_ server: ServerName, _ reason: String) {
        while let (ticket, _) = queue.take(for: server) {
            queue.finish(ticket, .refused(status: 403, reason: reason))
        }
    }

    private mutating func token(at now: HubTime) -> ProviderToken? {
        do {
            return try keeper.token(at: now)
        } catch {
            // BoringSSL without memory or randomness: nothing that a later attempt may not find mended.
            notices.append(Notice(level: .error, text: "No provider token can be signed: \(error)"))
            return nil
        }
    }
}

import Hub
import Logging

/// The request for a credential under way, on a connection of its own.
struct CredentialFetch {
    let connection: PushTransport.Connection
    let request: PushRequest
    let server: ServerName
    /// The time when it is abandoned, in monotonic milliseconds.
    let until: Int64
}

/// Fetches credentials from services that issue them. One request at a time.
extension Sender {
    /// The ticket of a credential's request, the only one on its connection.
    private static var ticket: SendQueue.Ticket { 1 }

    mutating func fetchCredential(at now: HubTime) {
        if let fetch, now.monotonic >= fetch.until { endFetch(nil, "it did not answer in time", at: now) }
        guard fetch == nil, !isStopping else { return }
        do {
            guard let (server, request) = try dialect.credentialRequest(at: now) else { return }
            guard let connection = transport.open(to: server) else {
                return report(dialect.take(credential: nil, at: now), server, "the URL cannot be used", at: now)
            }
            fetch = CredentialFetch(
                connection: connection, request: request, server: server, until: now.monotonic + rules.fetchTimeout)
        } catch {
            notices.append(Notice(level: .error, text: "Pushes cannot be authorized: \(error)"))
        }
    }

    mutating func advanceFetch(_ event: TransportEvent, at now: HubTime) {
        guard let fetch else { return }
        switch event {
        case .opened:
            if !transport.post(fetch.request, Self.ticket, on: fetch.connection) {
                endFetch(nil, "the connection takes nothing", at: now)
            }
        case .answered(_, let answer): endFetch(answer, "it answered with status \(answer.status)", at: now)
        case .closed(let why): endFetch(nil, why, at: now)
        case .unseen, .lost: endFetch(nil, "it did not answer", at: now)
        case .goAway, .pong: break
        }
    }

    private mutating func endFetch(_ answer: Answer?, _ why: String, at now: HubTime) {
        guard let ended = fetch else { return }
        fetch = nil
        transport.close(ended.connection)
        report(dialect.take(credential: answer, at: now), ended.server, why, at: now)
    }

    private mutating func report(_ verdict: CredentialVerdict, _ server: ServerName, _ why: String, at now: HubTime) {
        switch verdict {
        case .good:
            for server in pools.keys where pools[server]?.circuit.succeed() == true { credentialFailures += 1 }
            guard credentialFailures > 0 else { break }
            credentialFailures = 0
            notices.append(Notice(level: .notice, text: "\(dialect.title(of: server)) authorizes pushes again."))
        case .later(let reason):
            credentialFailures += 1
            // Logged once, not with every attempt.
            guard credentialFailures == 1 else { break }
            let text =
                "\(dialect.title(of: server)) does not authorize pushes (\(reason.isEmpty ? why : reason)). The hub keeps trying."
            notices.append(Notice(level: .warning, text: text))
        case .refused(let reason, let advice):
            if pools.isEmpty, credentialFailures == 0 {
                // Nothing waits to be sent yet, so there is no circuit breaker to report it.
                let text = "\(dialect.title(of: server)) refuses \(dialect.keyName) with \(reason): \(advice)"
                notices.append(Notice(level: .error, text: text))
            }
            credentialFailures += 1
            for server in pools.keys { openCircuit(server, reason, advice, at: now) }
        }
    }
}

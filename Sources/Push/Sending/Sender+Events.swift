import Hub
import Logging

extension Sender {
    mutating func handle(_ event: TransportEvent, on connection: PushTransport.Connection, at now: HubTime) {
        switch event {
        case .opened: opened(connection, at: now)
        case .closed(let why): closed(connection, why, at: now)
        case .goAway(let why): goAway(connection, why)
        case .pong: withLink(connection) { $0.hear(at: now.monotonic) }
        case .answered(let ticket, let answer):
            withLink(connection) {
                $0.hear(at: now.monotonic)
                $0.hasAnswered = true
                $0.timeouts = 0
            }
            if let flight = land(ticket, from: connection) { settle(ticket, flight, answer, at: now) }
        case .unseen(let ticket):
            if land(ticket, from: connection) != nil { returnUnseen(ticket, at: now) }
        case .lost(let ticket):
            if land(ticket, from: connection) != nil { lose(ticket, at: now) }
        }
    }

    mutating func withLink(_ connection: PushTransport.Connection, _ body: (inout Link) -> Void) {
        guard let server = servers[connection], var link = pools[server]?.links[connection] else { return }
        body(&link)
        pools[server]?.links[connection] = link
    }

    /// It is no longer on its way; nil where it was not, on that connection.
    mutating func land(_ ticket: SendQueue.Ticket, from connection: PushTransport.Connection) -> Flight? {
        guard let flight = flights[ticket], flight.connection == connection else { return nil }
        flights[ticket] = nil
        withLink(connection) { $0.inFlight -= 1 }
        return flight
    }

    private mutating func opened(_ connection: PushTransport.Connection, at now: HubTime) {
        withLink(connection) {
            if $0.state == .connecting { $0.state = .open }
            $0.hear(at: now.monotonic)
        }
        counts.connectionsOpened += 1
        guard let server = servers[connection] else { return }
        notices.append(Notice(level: .debug, text: "Connected to APNs (\(server))."))
    }

    private mutating func goAway(_ connection: PushTransport.Connection, _ why: String) {
        counts.goAways += 1
        withLink(connection) { $0.state = .retired }
        guard let server = servers[connection] else { return }
        notices.append(Notice(level: .info, text: "APNs (\(server)) asked for another connection (\(why))."))
    }

    private mutating func closed(_ connection: PushTransport.Connection, _ why: String, at now: HubTime) {
        guard let server = servers.removeValue(forKey: connection),
            let link = pools[server]?.links.removeValue(forKey: connection)
        else { return }
        // One that served is replaced at once. One that came to nothing is not: the next may not fare better.
        guard link.hasAnswered else { return failToConnect(server, why, at: now) }
        notices.append(Notice(level: .debug, text: "The connection to APNs (\(server)) ended: \(why)."))
    }
}

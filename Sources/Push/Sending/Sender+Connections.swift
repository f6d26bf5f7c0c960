import Hub
import Logging

extension Sender {
    /// The server has not looked at it, so it goes again, whatever it is.
    mutating func returnUnseen(_ ticket: SendQueue.Ticket, at now: HubTime) {
        guard let entry = queue[ticket] else { return }
        // A server that turns everything away is not to be asked as fast as we can.
        let delay =
            entry.unseen < SenderRules.hastyReturns
            ? nil : Backoff.connecting.delay(after: entry.unseen - SenderRules.hastyReturns + 1, using: &random)
        sendAgain(ticket, notBefore: delay.map { now.monotonic + $0 }, at: now) { $0.unseen += 1 }
    }

    /// It left and will not be answered: nobody knows whether it came in.
    mutating func lose(_ ticket: SendQueue.Ticket, at now: HubTime) {
        guard let entry = queue[ticket] else { return }
        counts.ambiguous += 1
        guard entry.push.resendsWhenUnanswered, entry.lost < SenderRules.resends, !isStopping else {
            return queue.finish(ticket, .unanswered)
        }
        sendAgain(ticket, at: now) { $0.lost += 1 }
    }

    /// Gives up on what was not answered in time.
    mutating func endSilentFlights(at now: HubTime) {
        while let (ticket, sent) = departures.first {
            guard let flight = flights[ticket], flight.sent == sent else {
                departures.removeFirst()
                continue
            }
            guard now.monotonic - sent >= rules.answerTimeout else { return }
            departures.removeFirst()
            let hasLeft = transport.cancel(ticket, on: flight.connection) ?? true
            guard land(ticket, from: flight.connection) != nil else { continue }
            withLink(flight.connection) { $0.timeouts += 1 }
            retireIfSilent(flight.connection)
            if hasLeft { lose(ticket, at: now) } else { returnUnseen(ticket, at: now) }
        }
    }

    private mutating func retireIfSilent(_ connection: PushTransport.Connection) {
        guard let server = servers[connection], let link = pools[server]?.links[connection],
            link.state == .open, link.timeouts >= SenderRules.timeoutsToRetire
        else { return }
        counts.connectionsRetired += 1
        withLink(connection) { $0.state = .retired }
        notices.append(
            Notice(
                level: .warning,
                text: "APNs (\(server)) left \(link.timeouts) pushes in a row unanswered: another connection is opened."
            ))
    }

    /// Ends connections that have done their work, and asks silent ones whether they still live.
    mutating func keepAlive(_ server: ServerName, at now: HubTime) {
        for (connection, link) in pools[server]?.links ?? [:] where link.state != .connecting {
            if link.state == .retired, link.inFlight == 0 {
                drop(connection, server)
            } else if let pinged = link.pinged, now.monotonic - pinged >= rules.pingTimeout {
                counts.connectionsRetired += 1
                notices.append(
                    Notice(level: .warning, text: "The connection to APNs (\(server)) is dead: opening another."))
                drop(connection, server)
                if !link.hasAnswered { failToConnect(server, "it does not answer", at: now) }
            } else if link.pinged == nil, now.monotonic >= askAt(link) {
                transport.ping(connection)
                withLink(connection) { $0.pinged = now.monotonic }
            }
        }
    }

    /// What was on its way there comes back as lost or unseen.
    private mutating func drop(_ connection: PushTransport.Connection, _ server: ServerName) {
        pools[server]?.links[connection] = nil
        servers[connection] = nil
        transport.close(connection)
    }

    private func askAt(_ link: Link) -> Int64 {
        link.inFlight > 0 ? max(link.heard, link.owed) + rules.silence : link.heard + rules.idlePing
    }

    /// When `advance` has something to do, in monotonic milliseconds.
    func nextDue(at now: HubTime) -> Int64 {
        var due = queue.nextDue(at: now) ?? .max
        if let first = departures.first { due = min(due, first.sent + rules.answerTimeout) }
        for (server, pool) in pools {
            for link in pool.links.values where link.state != .connecting {
                due = min(due, link.pinged.map { $0 + rules.pingTimeout } ?? askAt(link))
            }
            guard queue.hasReady(for: server) else { continue }
            for time in [pool.pausedUntil, pool.connectAfter, pool.circuit.nextDue ?? 0] where time > now.monotonic {
                due = min(due, time)
            }
        }
        return due
    }
}

import Hub
import Logging

extension Sender {
    /// Sends a notification of any kind again, because the server has not processed its request.
    mutating func returnUnseen(_ ticket: SendQueue.Ticket, at now: HubTime) {
        guard let entry = queue[ticket] else { return }
        // A server that rejects everything is not tried again as fast as possible.
        let delay =
            entry.unseen < SenderRules.hastyReturns
            ? nil : PushBackoff.connecting.delay(after: entry.unseen - SenderRules.hastyReturns + 1, using: &random)
        sendAgain(ticket, notBefore: delay.map { now.monotonic + $0 }, at: now) { $0.unseen += 1 }
    }

    /// Handles a request that left and will not be answered: whether it arrived is unknown.
    mutating func lose(_ ticket: SendQueue.Ticket, at now: HubTime) {
        guard let entry = queue[ticket] else { return }
        counts.ambiguous += 1
        guard entry.push.resendsWhenUnanswered, entry.lost < SenderRules.resends, !isStopping else {
            return queue.finish(ticket, .unanswered)
        }
        sendAgain(ticket, at: now) { $0.lost += 1 }
    }

    /// Stops waiting for requests that were not answered in time.
    mutating func endSilentRequests(at now: HubTime) {
        while let (ticket, sent) = departures.first {
            guard let request = inFlight[ticket], request.sent == sent else {
                departures.removeFirst()
                continue
            }
            guard now.monotonic - sent >= rules.answerTimeout else { return }
            departures.removeFirst()
            let hasLeft = transport.cancel(ticket, on: request.connection) ?? true
            guard land(ticket, from: request.connection) != nil else { continue }
            withLink(request.connection) { $0.timeouts += 1 }
            retireIfSilent(request.connection)
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
                text:
                    "\(dialect.title(of: server)) left \(link.timeouts) pushes in a row unanswered: another connection is opened."
            ))
    }

    /// Closes connections that have finished, and pings silent ones.
    mutating func keepAlive(_ server: ServerName, at now: HubTime) {
        for (connection, link) in pools[server]?.links ?? [:] where link.state != .connecting {
            if link.state == .retired, link.inFlight == 0 {
                drop(connection, server)
            } else if let pinged = link.pinged, now.monotonic - pinged >= rules.pingTimeout {
                counts.connectionsRetired += 1
                notices.append(
                    Notice(
                        level: .warning,
                        text: "The connection to \(dialect.title(of: server)) is dead: opening another."))
                drop(connection, server)
                if !link.hasAnswered { failToConnect(server, "it does not answer", at: now) }
            } else if link.pinged == nil, now.monotonic >= askAt(link) {
                transport.ping(connection)
                withLink(connection) { $0.pinged = now.monotonic }
            }
        }
    }

    /// Closes a connection. Requests in flight on it come back as lost or unseen.
    mutating func drop(_ connection: PushTransport.Connection, _ server: ServerName) {
        pools[server]?.links[connection] = nil
        servers[connection] = nil
        transport.close(connection)
    }

    /// The time when a connection should be pinged, in monotonic milliseconds.
    private func askAt(_ link: PooledConnection) -> Int64 {
        link.inFlight > 0 ? max(link.heard, link.answersDueSince) + rules.silence : link.heard + rules.idlePing
    }

    /// The time when `advance` next has something to do, in monotonic milliseconds.
    func nextDue(at now: HubTime) -> Int64 {
        var due = queue.nextDue(at: now) ?? .max
        if let first = departures.first { due = min(due, first.sent + rules.answerTimeout) }
        if let first = detours.first { due = min(due, first.until) }
        if let fetch {
            due = min(due, fetch.until)
        } else if let next = dialect.nextCredential(at: now) {
            due = min(due, next)
        }
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

extension Sender {
    /// Handles an event of a connection, or of a request on it.
    mutating func handle(_ event: TransportEvent, on connection: PushTransport.Connection, at now: HubTime) {
        if connection == fetch?.connection { return advanceFetch(event, at: now) }
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
            if let request = land(ticket, from: connection) { settle(ticket, request, dialect.read(answer), at: now) }
        case .unseen(let ticket):
            if land(ticket, from: connection) != nil { returnUnseen(ticket, at: now) }
        case .lost(let ticket):
            if land(ticket, from: connection) != nil { lose(ticket, at: now) }
        }
    }

    mutating func withLink(_ connection: PushTransport.Connection, _ body: (inout PooledConnection) -> Void) {
        guard let server = servers[connection], var link = pools[server]?.links[connection] else { return }
        body(&link)
        pools[server]?.links[connection] = link
    }

    /// Marks a request as no longer in flight.
    ///
    /// - Returns: the request; nil if it was not in flight on that connection.
    mutating func land(_ ticket: SendQueue.Ticket, from connection: PushTransport.Connection) -> InFlightRequest? {
        guard let request = inFlight[ticket], request.connection == connection else { return nil }
        inFlight[ticket] = nil
        withLink(connection) { $0.inFlight -= 1 }
        return request
    }

    private mutating func opened(_ connection: PushTransport.Connection, at now: HubTime) {
        withLink(connection) {
            if $0.state == .connecting { $0.state = .open }
            $0.hear(at: now.monotonic)
        }
        counts.connectionsOpened += 1
        guard let server = servers[connection] else { return }
        pools[server]?.wasReached = true
        notices.append(Notice(level: .debug, text: "Connected to \(dialect.title(of: server))."))
    }

    private mutating func goAway(_ connection: PushTransport.Connection, _ why: String) {
        counts.goAways += 1
        withLink(connection) { $0.state = .retired }
        guard let server = servers[connection] else { return }
        notices.append(
            Notice(level: .info, text: "\(dialect.title(of: server)) asked for another connection (\(why))."))
    }

    private mutating func closed(_ connection: PushTransport.Connection, _ why: String, at now: HubTime) {
        guard let server = servers.removeValue(forKey: connection),
            let link = pools[server]?.links.removeValue(forKey: connection)
        else { return }
        // A connection that has answered is replaced at once. One that has not is not: the next may fare no better.
        guard link.hasAnswered else { return failToConnect(server, why, at: now) }
        notices.append(Notice(level: .debug, text: "The connection to \(dialect.title(of: server)) ended: \(why)."))
    }
}

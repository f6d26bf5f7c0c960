import Hub
import Logging

extension Sender {
    mutating func settle(_ ticket: SendQueue.Ticket, _ flight: Flight, _ answer: Answer, at now: HubTime) {
        let verdict = Verdict(answer)
        if verdict != .delivered { counts.refused[KnownReasons.name(of: answer), default: 0] += 1 }
        if verdict.acceptsKey { keyIsGood(flight.server) }
        switch verdict {
        case .delivered: finish(ticket, flight, .delivered)
        case .unregistered(let since): finish(ticket, flight, .unregistered(since: since))
        case .badToken: finish(ticket, flight, .badToken(reason: answer.reason))
        case .refused: finish(ticket, flight, .refused(status: answer.status, reason: answer.reason))
        case .staleProviderToken:
            if keeper.expire(flight.generation, at: now), mayTryAgain(ticket) {
                sendAgain(ticket, at: now) { $0.rejected += 1 }
            } else {
                breakCircuit(ticket, flight, answer, at: now)
            }
        case .badKey: breakCircuit(ticket, flight, answer, at: now)
        case .otherConnection:
            withLink(flight.connection) { $0.state = .retired }
            if mayTryAgain(ticket) {
                sendAgain(ticket, at: now) { $0.rejected += 1 }
            } else if answer.status == 403 {
                breakCircuit(ticket, flight, answer, at: now)
            } else {
                postpone(ticket, at: now)
            }
        case .laterForThisLane:
            pools[flight.server]?.isWell()
            postpone(ticket, at: now)
        case .laterWithThisToken:
            pause(flight.server, atLeast: Pool.busyLimit, answer, at: now)
            postpone(ticket, at: now)
        case .laterForAll:
            pause(flight.server, atLeast: 1, answer, at: now)
            postpone(ticket, at: now)
        }
    }

    private mutating func finish(_ ticket: SendQueue.Ticket, _ flight: Flight, _ outcome: PushOutcome) {
        pools[flight.server]?.isWell()
        queue.finish(ticket, outcome)
    }

    private func mayTryAgain(_ ticket: SendQueue.Ticket) -> Bool {
        (queue[ticket]?.rejected ?? 0) < SenderRules.rejections
    }

    mutating func sendAgain(
        _ ticket: SendQueue.Ticket, notBefore time: Int64? = nil, at now: HubTime,
        _ change: (inout QueuedPush) -> Void
    ) {
        counts.retries += 1
        queue.putBack(ticket, notBefore: time, at: now, change)
    }

    private mutating func postpone(_ ticket: SendQueue.Ticket, at now: HubTime) {
        let delay = Backoff.sending.delay(after: (queue[ticket]?.postponed ?? 0) + 1, using: &random)
        sendAgain(ticket, notBefore: now.monotonic + delay, at: now) { $0.postponed += 1 }
    }

    private mutating func pause(_ server: ServerName, atLeast least: Int, _ answer: Answer, at now: HubTime) {
        guard var pool = pools[server] else { return }
        if pool.isBusy(atLeast: least, at: now.monotonic) {
            let rounds = pool.busy - Pool.busyLimit + 1
            pool.pausedUntil = now.monotonic + Backoff.sending.delay(after: rounds, using: &random)
            if rounds == 1 {
                let reason = KnownReasons.name(of: answer)
                notices.append(
                    Notice(level: .warning, text: "APNs (\(server)) is busy (\(reason)): pushes wait, and go on."))
            }
        }
        pools[server] = pool
    }

    private mutating func breakCircuit(
        _ ticket: SendQueue.Ticket, _ flight: Flight, _ answer: Answer, at now: HubTime
    ) {
        let reason = KnownReasons.name(of: answer)
        if pools[flight.server]?.circuit.fail(reason, at: now.monotonic) == true {
            notices.append(
                Notice(level: .error, text: KeyAdvice.sentence(answer, key, flight.server, at: now.unix)))
        }
        pools[flight.server]?.failures = 0
        if rules.waitsWhenKeyIsRefused {
            sendAgain(ticket, at: now) { $0.rejected = 0 }
        } else {
            queue.finish(ticket, .refused(status: answer.status, reason: answer.reason))
        }
    }

    private mutating func keyIsGood(_ server: ServerName) {
        guard pools[server]?.circuit.succeed() == true else { return }
        notices.append(Notice(level: .notice, text: "APNs (\(server)) takes \(key.name) again."))
    }
}

extension Verdict {
    /// Whether APNs looked at more than the provider token.
    fileprivate var acceptsKey: Bool {
        switch self {
        case .delivered, .unregistered, .badToken, .refused, .laterForThisLane: true
        case .staleProviderToken, .badKey, .otherConnection, .laterWithThisToken, .laterForAll: false
        }
    }
}

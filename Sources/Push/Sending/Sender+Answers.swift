import Hub
import Logging

/// The consequences of the answer to a request.
extension Sender {
    mutating func settle(_ ticket: SendQueue.Ticket, _ request: InFlightRequest, _ answer: Answer, at now: HubTime) {
        let verdict = dialect.verdict(on: answer)
        if verdict != .delivered { counts.refused[dialect.countedName(of: answer), default: 0] += 1 }
        if verdict.acceptsKey { keyIsGood(request.server, at: now) }
        switch verdict {
        case .delivered: finish(ticket, request, .delivered)
        case .unregistered(let since):
            // A device that was registered again while this was on its way is not dropped. The stored time is finer than a millisecond.
            let since = since ?? queue[ticket]?.push.registeredAt.map { $0 + 1 }
            finish(ticket, request, .unregistered(since: since))
        case .badToken: settleBadToken(ticket, request, answer, at: now)
        case .refused: finish(ticket, request, .refused(status: answer.status, reason: answer.reason))
        case .staleCredential:
            if dialect.expire(request.generation, by: answer, of: request.server, at: now), mayTryAgain(ticket) {
                sendAgain(ticket, at: now) { $0.rejected += 1 }
            } else if dialect.refusalsConcernOneDevice {
                warn(
                    "\(dialect.title(of: request.server)) answers \(answer.status): \(dialect.advice(on: answer, at: now.unix))",
                    at: now)
                finish(ticket, request, .badToken(reason: dialect.countedName(of: answer)))
            } else {
                breakCircuit(ticket, request, answer, at: now)
            }
        case .tooLarge: shorten(ticket, request, answer, at: now)
        case .badKey: breakCircuit(ticket, request, answer, at: now)
        case .keyOfOtherEnvironment: settleKeyOfOtherEnvironment(ticket, request, answer, at: now)
        case .otherConnection:
            withLink(request.connection) { $0.state = .retired }
            if mayTryAgain(ticket) {
                sendAgain(ticket, at: now) { $0.rejected += 1 }
            } else if answer.status == 403 {
                breakCircuit(ticket, request, answer, at: now)
            } else {
                postpone(ticket, answer, at: now)
            }
        case .laterForThisLane:
            pools[request.server]?.isWell()
            postpone(ticket, answer, at: now)
        case .laterWithThisCredential:
            pause(request.server, atLeast: ConnectionPool.busyLimit, answer, at: now)
            postpone(ticket, answer, at: now)
        case .laterForAll:
            pause(request.server, atLeast: 1, answer, at: now)
            postpone(ticket, answer, at: now)
        }
    }

    mutating func finish(_ ticket: SendQueue.Ticket, _ request: InFlightRequest, _ outcome: PushOutcome) {
        pools[request.server]?.isWell()
        noteEnvironment(of: ticket, request, outcome)
        queue.finish(ticket, outcome)
    }

    /// Sends a shorter payload, a few times.
    private mutating func shorten(
        _ ticket: SendQueue.Ticket, _ request: InFlightRequest, _ answer: Answer, at now: HubTime
    ) {
        guard mayTryAgain(ticket), let payload = queue[ticket].flatMap({ dialect.shortened($0.push.payload) }) else {
            return finish(ticket, request, .refused(status: answer.status, reason: answer.reason))
        }
        pools[request.server]?.isWell()
        sendAgain(ticket, at: now) { entry in
            entry.rejected += 1
            entry.push.payload = payload
        }
    }

    /// Warns the operator of problems that may concern many notifications, at most once a minute.
    private mutating func warn(_ text: String, at now: HubTime) {
        guard now.monotonic >= nextWarning else { return }
        nextWarning = now.monotonic + 60_000
        notices.append(Notice(level: .warning, text: text))
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

    private mutating func postpone(_ ticket: SendQueue.Ticket, _ answer: Answer, at now: HubTime) {
        let backoff = PushBackoff.sending.delay(after: (queue[ticket]?.postponed ?? 0) + 1, using: &random)
        let delay = max(backoff, Self.patience(answer))
        sendAgain(ticket, notBefore: now.monotonic + delay, at: now) { $0.postponed += 1 }
    }

    private mutating func pause(_ server: ServerName, atLeast least: Int, _ answer: Answer, at now: HubTime) {
        guard var pool = pools[server] else { return }
        if pool.isBusy(atLeast: least, at: now.monotonic) {
            let rounds = pool.busy - ConnectionPool.busyLimit + 1
            let backoff = PushBackoff.sending.delay(after: rounds, using: &random)
            pool.pausedUntil = now.monotonic + max(backoff, Self.patience(answer))
            if rounds == 1 {
                let text =
                    "\(dialect.title(of: server)) is busy (\(dialect.countedName(of: answer))): pushes wait, and go on."
                notices.append(Notice(level: .warning, text: text))
            }
        }
        pools[server] = pool
    }

    /// Returns the pause that the service asks for (Retry-After), within limits; in milliseconds.
    private static func patience(_ answer: Answer) -> Int64 {
        min(max(0, answer.retryAfter ?? 0), PushBackoff.sending.ceiling)
    }

    mutating func breakCircuit(
        _ ticket: SendQueue.Ticket, _ request: InFlightRequest, _ answer: Answer, at now: HubTime
    ) {
        openCircuit(
            request.server, dialect.countedName(of: answer), dialect.advice(on: answer, at: now.unix), at: now)
        pools[request.server]?.failures = 0
        if rules.waitsWhenKeyIsRefused {
            sendAgain(ticket, at: now) { $0.rejected = 0 }
        } else {
            queue.finish(ticket, .refused(status: answer.status, reason: answer.reason))
        }
    }

    /// Opens the circuit breaker: nothing that is sent with the key is accepted.
    mutating func openCircuit(_ server: ServerName, _ reason: String, _ advice: String, at now: HubTime) {
        guard pools[server]?.circuit.fail(reason, at: now.monotonic) == true else { return }
        let text = """
            \(dialect.title(of: server)) refuses \(dialect.keyName) with \(reason): \(advice) Until then only one push a minute is sent \
            there, as a test.
            """
        notices.append(Notice(level: .error, text: text))
    }

    private mutating func keyIsGood(_ server: ServerName, at now: HubTime) {
        if !server.isForBroadcasts, let environment = server.environment { noteKeyAccepted(in: environment, at: now) }
        guard pools[server]?.circuit.succeed() == true else { return }
        notices.append(Notice(level: .notice, text: "\(dialect.title(of: server)) takes \(dialect.keyName) again."))
    }
}

extension AnswerVerdict {
    /// Whether the answer shows that APNs accepts the key, because APNs examined more than the provider token.
    fileprivate var acceptsKey: Bool {
        switch self {
        case .delivered, .unregistered, .badToken, .refused, .tooLarge, .laterForThisLane: true
        case .staleCredential, .badKey, .keyOfOtherEnvironment, .otherConnection, .laterWithThisCredential,
            .laterForAll:
            false
        }
    }
}

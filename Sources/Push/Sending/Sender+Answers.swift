import Hub
import Logging

/// What follows from the answer to a request.
extension Sender {
    mutating func settle(_ ticket: SendQueue.Ticket, _ request: InFlightRequest, _ answer: Answer, at now: HubTime) {
        let verdict = AnswerVerdict(answer)
        if verdict != .delivered { counts.refused[KnownReasons.name(of: answer), default: 0] += 1 }
        if verdict.acceptsKey { keyIsGood(request.server, at: now) }
        switch verdict {
        case .delivered: finish(ticket, request, .delivered)
        case .unregistered(let since): finish(ticket, request, .unregistered(since: since))
        case .badToken: settleBadToken(ticket, request, answer, at: now)
        case .refused: finish(ticket, request, .refused(status: answer.status, reason: answer.reason))
        case .staleProviderToken:
            if tokens.expire(request.generation, at: now), mayTryAgain(ticket) {
                sendAgain(ticket, at: now) { $0.rejected += 1 }
            } else {
                breakCircuit(ticket, request, answer, at: now)
            }
        case .badKey: breakCircuit(ticket, request, answer, at: now)
        case .keyOfOtherEnvironment: settleKeyOfOtherEnvironment(ticket, request, answer, at: now)
        case .otherConnection:
            withLink(request.connection) { $0.state = .retired }
            if mayTryAgain(ticket) {
                sendAgain(ticket, at: now) { $0.rejected += 1 }
            } else if answer.status == 403 {
                breakCircuit(ticket, request, answer, at: now)
            } else {
                postpone(ticket, at: now)
            }
        case .laterForThisLane:
            pools[request.server]?.isWell()
            postpone(ticket, at: now)
        case .laterWithThisToken:
            pause(request.server, atLeast: ConnectionPool.busyLimit, answer, at: now)
            postpone(ticket, at: now)
        case .laterForAll:
            pause(request.server, atLeast: 1, answer, at: now)
            postpone(ticket, at: now)
        }
    }

    mutating func finish(_ ticket: SendQueue.Ticket, _ request: InFlightRequest, _ outcome: PushOutcome) {
        pools[request.server]?.isWell()
        noteEnvironment(of: ticket, request, outcome)
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
        let delay = PushBackoff.sending.delay(after: (queue[ticket]?.postponed ?? 0) + 1, using: &random)
        sendAgain(ticket, notBefore: now.monotonic + delay, at: now) { $0.postponed += 1 }
    }

    private mutating func pause(_ server: ServerName, atLeast least: Int, _ answer: Answer, at now: HubTime) {
        guard var pool = pools[server] else { return }
        if pool.isBusy(atLeast: least, at: now.monotonic) {
            let rounds = pool.busy - ConnectionPool.busyLimit + 1
            pool.pausedUntil = now.monotonic + PushBackoff.sending.delay(after: rounds, using: &random)
            if rounds == 1 {
                let reason = KnownReasons.name(of: answer)
                notices.append(
                    Notice(level: .warning, text: "APNs (\(server)) is busy (\(reason)): pushes wait, and go on."))
            }
        }
        pools[server] = pool
    }

    mutating func breakCircuit(
        _ ticket: SendQueue.Ticket, _ request: InFlightRequest, _ answer: Answer, at now: HubTime
    ) {
        let reason = KnownReasons.name(of: answer)
        if pools[request.server]?.circuit.fail(reason, at: now.monotonic) == true {
            notices.append(
                Notice(level: .error, text: KeyAdvice.sentence(answer, key, request.server, at: now.unix)))
        }
        pools[request.server]?.failures = 0
        if rules.waitsWhenKeyIsRefused {
            sendAgain(ticket, at: now) { $0.rejected = 0 }
        } else {
            queue.finish(ticket, .refused(status: answer.status, reason: answer.reason))
        }
    }

    private mutating func keyIsGood(_ server: ServerName, at now: HubTime) {
        if !server.isForBroadcasts { noteKeyAccepted(in: server.environment, at: now) }
        guard pools[server]?.circuit.succeed() == true else { return }
        notices.append(Notice(level: .notice, text: "APNs (\(server)) takes \(key.name) again."))
    }
}

extension AnswerVerdict {
    /// Whether the answer shows that APNs accepts the key, because it looked at more than the provider token.
    fileprivate var acceptsKey: Bool {
        switch self {
        case .delivered, .unregistered, .badToken, .refused, .laterForThisLane: true
        case .staleProviderToken, .badKey, .keyOfOtherEnvironment, .otherConnection, .laterWithThisToken, .laterForAll:
            false
        }
    }
}

/// What the log tells the operator when APNs takes nothing that is sent with a key.
enum KeyAdvice {
    /// How far clocks may differ before that is worth a word, in milliseconds; a provider token is good for an hour.
    private static let tolerance: Int64 = 60_000

    static func sentence(_ answer: Answer, _ key: ProviderKey, _ server: ServerName, at unix: Int64) -> String {
        "APNs (\(server)) refuses \(key.name) with \(KnownReasons.name(of: answer)): \(advice(answer, at: unix)) Until "
            + "then only one push a minute is sent there, as a test."
    }

    private static func advice(_ answer: Answer, at unix: Int64) -> String {
        switch answer.reason {
        case "ExpiredProviderToken", "InvalidProviderToken":
            if let skew = skew(answer, at: unix) { return skew }
            return answer.reason == "ExpiredProviderToken"
                ? "the provider token was just made, so check that this machine's clock is right."
                : "check that the team id, the key id and the private key belong together, and that the key is not "
                    + "revoked."
        case "BadEnvironmentKeyIdInToken", "BadEnvironmentKeyInToken":
            return "the key is for the other environment; make one for this, or set apns.environment."
        case "UnrelatedKeyIdInToken":
            return "the key does not belong to the app's team; set apns.key_id and apns.team_id."
        case "MissingProviderToken":
            return "the authorization did not arrive; check whether a proxy removes it."
        case "BadCertificate", "BadCertificateEnvironment":
            return "it wants a certificate; check that apns.url leads to APNs."
        default:
            return "check in developer.apple.com that the key is enabled for APNs and for the app."
        }
    }

    private static func skew(_ answer: Answer, at unix: Int64) -> String? {
        guard let date = answer.date, abs(unix - date) > tolerance else { return nil }
        let seconds = abs(unix - date) / 1000
        return "this machine's clock is \(seconds) s \(unix > date ? "ahead of" : "behind") APNs'; set it right."
    }
}

import Hub
import Logging

/// Finds the environment that a token belongs to, and the one that the key is for.
///
/// A notification whose token APNs does not know, or whose key it does not take, goes to the other environment, once. So
/// each is refused twice at most, and taken once.
extension Sender {
    /// Where a notification is sent first.
    func server(for push: Push) -> ServerName {
        guard rules.hasTwoHosts, case .device(let destination) = push.target else { return ServerName(push.target) }
        return ServerName(environments[destination.token] ?? destination.environment)
    }

    mutating func settleBadToken(
        _ ticket: SendQueue.Ticket, _ request: InFlightRequest, _ answer: Answer, at now: HubTime
    ) {
        guard answer.reason == AnswerReason.badToken else {
            return finish(ticket, request, .badToken(reason: answer.reason))
        }
        if sendElsewhere(ticket, request, because: answer.reason, at: now) {
            pools[request.server]?.isWell()
            detours.append((ticket, now.monotonic + SenderRules.detourPatience))
        } else {
            finish(ticket, request, .badToken(reason: queue[ticket]?.firstRefusal ?? answer.reason))
        }
    }

    mutating func settleKeyOfOtherEnvironment(
        _ ticket: SendQueue.Ticket, _ request: InFlightRequest, _ answer: Answer, at now: HubTime
    ) {
        guard rules.hasTwoHosts, let counterpart = request.server.counterpart, let own = request.server.environment,
            let other = counterpart.environment
        else { return breakCircuit(ticket, request, answer, at: now) }
        environments.refuseKey(in: own, at: now.monotonic)
        sayKeyEnvironment(at: now)
        if let reason = queue[ticket]?.firstRefusal,
            !environments.refusesKey(in: other, at: now.monotonic)
        {
            finish(ticket, request, .badToken(reason: reason))
        } else if !sendElsewhere(ticket, request, because: AnswerReason.badEnvironmentKey, at: now) {
            breakCircuit(ticket, request, answer, at: now)
        }
    }

    /// Sends a notification to the environment that has not seen it.
    ///
    /// - Returns: false if there is none.
    private mutating func sendElsewhere(
        _ ticket: SendQueue.Ticket, _ request: InFlightRequest, because reason: String, at now: HubTime
    ) -> Bool {
        guard rules.hasTwoHosts, let counterpart = request.server.counterpart, let other = counterpart.environment,
            let entry = queue[ticket], entry.firstRefusal == nil,
            !environments.refusesKey(in: other, at: now.monotonic)
        else { return false }
        sendAgain(ticket, at: now) { entry in
            entry.server = counterpart
            entry.firstRefusal = reason
        }
        return true
    }

    /// Sends what waits for an environment that the key is not for to the other one.
    mutating func redirect(from server: ServerName, at now: HubTime) {
        guard rules.hasTwoHosts, let counterpart = server.counterpart, queue.hasReady(for: server),
            let own = server.environment, let other = counterpart.environment,
            environments.refusesKey(in: own, at: now.monotonic), !environments.refusesKey(in: other, at: now.monotonic)
        else { return }
        while let (ticket, entry) = queue.take(for: server) {
            if let reason = entry.firstRefusal {
                queue.finish(ticket, .badToken(reason: reason))
            } else {
                queue.putBack(ticket, notBefore: nil, at: now) { entry in
                    entry.server = counterpart
                    entry.firstRefusal = AnswerReason.badEnvironmentKey
                }
            }
        }
    }

    /// Gives up notifications whose second environment cannot be reached. Their tokens may be good.
    mutating func endDetours(at now: HubTime) {
        while let (ticket, until) = detours.first, until <= now.monotonic {
            detours.removeFirst()
            guard let entry = queue[ticket], let reason = entry.firstRefusal else { continue }
            let isReachable = pools[entry.server]?.links.values.contains { $0.state == .open } ?? false
            // A server that is there and busy is waited for, as with any other notification.
            if isReachable || queue.isInFlight(ticket) {
                detours.append((ticket, now.monotonic + SenderRules.detourPatience))
            } else {
                queue.end(ticket, .refused(status: 400, reason: reason))
            }
        }
    }

    /// Keeps what an outcome says of a token's environment.
    mutating func noteEnvironment(of ticket: SendQueue.Ticket, _ request: InFlightRequest, _ outcome: PushOutcome) {
        guard rules.hasTwoHosts, case .device(let destination)? = queue[ticket]?.push.target,
            let environment = request.server.environment
        else { return }
        switch outcome {
        case .delivered where environment != destination.environment,
            .unregistered where environment != destination.environment:
            environments[destination.token] = environment
            queue.noteEnvironment(environment, of: ticket)
            counts.environmentsFound += 1
        case .delivered, .unregistered, .badToken: environments[destination.token] = nil
        default: break
        }
    }

    mutating func noteKeyAccepted(in environment: PushEnvironment, at now: HubTime) {
        environments.acceptKey(in: environment)
        sayKeyEnvironment(at: now)
    }

    /// Tells the operator, once, that the key is for one environment alone.
    private mutating func sayKeyEnvironment(at now: HubTime) {
        guard let environment = environments.takeNewKeyEnvironment(at: now.monotonic) else { return }
        let text = """
            APNs takes \(dialect.keyName) in \(environment.phrase) alone (\(AnswerReason.badEnvironmentKey)): phones whose app is of \
            \(environment.other.phrase) get no pushes until there is a key for both.
            """
        notices.append(Notice(level: .warning, text: text))
    }
}

/// What APNs has said of environments: of tokens that are not where their registration says, and of the key.
struct EnvironmentCache {
    private var environments: [PushToken: PushEnvironment] = [:]
    private var acceptances: Set<PushEnvironment> = []
    /// Since when an environment refuses the key, in monotonic milliseconds.
    private var refusals: [PushEnvironment: Int64] = [:]
    private var saidEnvironment: PushEnvironment?

    /// Tokens that are remembered. The database has all; this is for what was read from it before.
    private static let capacity = 10_000
    /// How long a refusal of the key is believed, in milliseconds: the operator may have widened its scope.
    private static let refusalLife: Int64 = 3_600_000

    /// The environment of a token, if it is not the one of its registration.
    subscript(token: PushToken) -> PushEnvironment? {
        get { environments[token] }
        set {
            if newValue != nil, environments.count >= Self.capacity { environments.removeAll() }
            environments[token] = newValue
        }
    }

    mutating func acceptKey(in environment: PushEnvironment) {
        acceptances.insert(environment)
        refusals[environment] = nil
    }

    mutating func refuseKey(in environment: PushEnvironment, at now: Int64) {
        acceptances.remove(environment)
        refusals[environment] = now
    }

    func refusesKey(in environment: PushEnvironment, at now: Int64) -> Bool {
        refusals[environment].map { now - $0 < Self.refusalLife } ?? false
    }

    /// The only environment that takes the key; nil while that is not known.
    func keyEnvironment(at now: Int64) -> PushEnvironment? {
        PushEnvironment.allCases.first { acceptances.contains($0) && refusesKey(in: $0.other, at: now) }
    }

    /// The only environment that takes the key, the first time that this is known.
    mutating func takeNewKeyEnvironment(at now: Int64) -> PushEnvironment? {
        guard let environment = keyEnvironment(at: now), environment != saidEnvironment else { return nil }
        saidEnvironment = environment
        return environment
    }
}

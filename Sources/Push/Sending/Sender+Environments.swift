import Hub
import Logging

/// Finds the environment that a token belongs to, and the one that the key is valid for.
///
/// A notification whose token APNs does not know, or whose key it refuses, is sent once to the other environment. So each is refused
/// twice at most, and accepted once.
extension Sender {
    /// Returns the first server for a notification.
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

    /// Sends a notification to the environment that has not refused it.
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

    /// Redirects notifications that wait for an environment which refuses the key to the other one.
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

    /// Abandons notifications whose second environment cannot be reached. Their tokens may be valid.
    mutating func endDetours(at now: HubTime) {
        while let (ticket, until) = detours.first, until <= now.monotonic {
            detours.removeFirst()
            guard let entry = queue[ticket], let reason = entry.firstRefusal else { continue }
            let isReachable = pools[entry.server]?.links.values.contains { $0.state == .open } ?? false
            // A reachable but busy server is given time, as with any other notification.
            if isReachable || queue.isInFlight(ticket) {
                detours.append((ticket, now.monotonic + SenderRules.detourPatience))
            } else {
                queue.end(ticket, .refused(status: 400, reason: reason))
            }
        }
    }

    /// Keeps the environment of a token that an outcome reveals.
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

    /// Tells the operator, once, that the key is valid for only one environment.
    private mutating func sayKeyEnvironment(at now: HubTime) {
        guard let environment = environments.takeNewKeyEnvironment(at: now.monotonic) else { return }
        let text = """
            APNs takes \(dialect.keyName) in \(environment.phrase) alone (\(AnswerReason.badEnvironmentKey)): phones whose app is of \
            \(environment.other.phrase) get no pushes until there is a key for both.
            """
        notices.append(Notice(level: .warning, text: text))
    }
}

/// The environments as reported by APNs: of tokens that are not where their registration says, and of the key.
struct EnvironmentCache {
    private var environments: [PushToken: PushEnvironment] = [:]
    private var acceptances: Set<PushEnvironment> = []
    /// The time since which an environment refuses the key, in monotonic milliseconds.
    private var refusals: [PushEnvironment: Int64] = [:]
    private var saidEnvironment: PushEnvironment?

    /// The number of tokens remembered. The database has all; this is for registrations read earlier.
    private static let capacity = 10_000
    /// The time for which a refusal of the key is believed, in milliseconds: the operator may have widened its scope.
    private static let refusalLife: Int64 = 3_600_000

    /// The environment of a token, if it is not the registered one.
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

    /// The only environment that accepts the key; nil while it is not known.
    func keyEnvironment(at now: Int64) -> PushEnvironment? {
        PushEnvironment.allCases.first { acceptances.contains($0) && refusesKey(in: $0.other, at: now) }
    }

    /// Returns the only environment that accepts the key, the first time that it is known.
    mutating func takeNewKeyEnvironment(at now: Int64) -> PushEnvironment? {
        guard let environment = keyEnvironment(at: now), environment != saidEnvironment else { return nil }
        saidEnvironment = environment
        return environment
    }
}

import Hub
import Logging
import Push
package import Wire
import Workers

/// The subject of a push in flight, needed when its outcome arrives.
enum InFlightPush {
    case alert(message: Name, user: Name)
    case activity(id: Name, timestamp: Int64)
}

/// Hands pushes to the clients, and tracks those in flight and useless tokens. Confined to the worker's thread.
final class PushOutbox {
    private let clients: PushClients
    private let database: PushDatabase
    private let logger: Logger
    private var inFlight: [PushID: InFlightPush] = [:]
    /// The number of those, by kind.
    private var counts: [PushKind: Int] = [:]
    /// Tokens unknown to their service: nothing is sent to them until they are registered again.
    private var badTokens: Set<PushToken> = []
    /// Tokens that their service reported as gone, and that were dropped from the database.
    private(set) var droppedTokens = 0
    private var warnings: RateLimitedLog

    init(_ clients: PushClients, _ database: PushDatabase, _ logger: Logger) {
        self.clients = clients
        self.database = database
        self.logger = logger
        warnings = RateLimitedLog(logger: logger)
    }

    /// The number of pushes whose outcome is awaited.
    var count: Int { inFlight.count }

    /// Whether the outcome of a push is awaited.
    func isInFlight(_ id: PushID) -> Bool { inFlight[id] != nil }

    /// The kinds of service in use.
    var kinds: Set<PushKind> { clients.kinds }

    /// Returns the number of pushes of a kind that can still be sent.
    ///
    /// - Parameter most: the maximum in flight.
    func room(for kind: PushKind, most: Int) -> Int { min(most - counts[kind, default: 0], clients.room(for: kind)) }

    /// Sends pushes of configured kinds (`kinds`).
    func send(_ pushes: [(push: Push, about: InFlightPush)]) {
        for (push, about) in pushes where inFlight.updateValue(about, forKey: push.id) == nil {
            counts[push.kind, default: 0] += 1
        }
        _ = clients.send(pushes.map(\.push))
    }

    /// Sends pushes whose outcomes are ignored, such as a start or a broadcast. Those of kinds that are not configured are dropped.
    func sendUntracked(_ pushes: [Push]) { _ = clients.send(pushes) }

    func isBad(_ token: PushToken) -> Bool { badTokens.contains(token) }

    /// Clears a token for another try, because it was registered.
    ///
    /// - Returns: whether nothing was sent to it before.
    @discardableResult
    func registered(_ token: PushToken) -> Bool { badTokens.remove(token) != nil }

    /// Records what the outcome reveals about the token.
    ///
    /// - Returns: the subject of the push; nil if its outcome is not awaited.
    func finish(_ push: Push, _ outcome: PushOutcome) -> InFlightPush? {
        if case .device(let destination) = push.target {
            if let found = push.foundEnvironment { keep(found, of: destination) }
            note(outcome, of: destination.moved(to: push.foundEnvironment ?? destination.environment))
        }
        switch outcome {
        case .refused, .tooLarge, .badToken:
            logger.warning("The push \(push.id) is not taken (\(push.kind)): \(outcome.words)")
        case .delivered, .unregistered, .superseded, .expired, .overflow, .unanswered, .stopped: break
        }
        guard let about = inFlight.removeValue(forKey: push.id) else { return nil }
        counts[push.kind, default: 1] -= 1
        return about
    }

    private func keep(_ environment: PushEnvironment, of destination: PushDestination) {
        // A failed write is made up for by the next push, which finds the environment again.
        database.attempt { _ = try $0.keep(environment, of: destination) }
        warnings.logWarning(
            "Apple knows the token \(destination.token) in \(environment.phrase) and not in "
                + "\(destination.environment.phrase), where its registration or apns.environment has it: its pushes go to "
                + "\(environment.phrase) from now on.", about: "environment")
    }

    private func note(_ outcome: PushOutcome, of destination: PushDestination) {
        switch outcome {
        case .unregistered(let since):
            // The token is gone, unless it was registered again since then.
            database.attempt { droppedTokens += try $0.drop(destination, ifRegisteredBefore: since) }
        case .badToken:
            // The token stays in the table: a wrong environment in the configuration must not cost all tokens.
            badTokens.insert(destination.token)
        default: break
        }
    }
}

extension PushOutcome {
    /// The outcome in a few words, for the table and the log.
    var words: String {
        switch self {
        case .delivered: "delivered"
        case .unregistered: "unregistered"
        case .refused(let status, let reason): "\(status) \(reason)"
        case .badToken(let reason): "bad token: \(reason)"
        case .superseded: "superseded"
        case .expired: "expired"
        case .overflow: "overflow"
        case .tooLarge(let bytes, let limit): "\(bytes) bytes, of \(limit)"
        case .unanswered: "unanswered"
        case .stopped: "stopped"
        }
    }
}

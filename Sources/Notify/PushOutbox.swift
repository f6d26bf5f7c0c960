import Hub
import Logging
import Push
package import Wire
import Workers

/// What a push in flight is about, for when its outcome comes.
enum InFlightPush {
    case alert(message: Name, user: Name)
    case activity(id: Name, timestamp: Int64)
}

/// Hands pushes to the clients, and knows which are in flight and which tokens are of no use. Confined to the worker's
/// thread.
final class PushOutbox {
    private let clients: PushClients
    private let database: PushDatabase
    private let logger: Logger
    private var inFlight: [PushID: InFlightPush] = [:]
    /// How many of those are of each kind.
    private var counts: [PushKind: Int] = [:]
    /// Tokens that their service does not know: nothing is sent to them until they are registered again.
    private var badTokens: Set<PushToken> = []
    /// Tokens that their service said are gone, and that were dropped from the database.
    private(set) var droppedTokens = 0
    private var warnings: RateLimitedLog

    init(_ clients: PushClients, _ database: PushDatabase, _ logger: Logger) {
        self.clients = clients
        self.database = database
        self.logger = logger
        warnings = RateLimitedLog(logger: logger)
    }

    /// Pushes whose outcome somebody waits for.
    var count: Int { inFlight.count }

    /// Whether the outcome of a push is waited for.
    func isInFlight(_ id: PushID) -> Bool { inFlight[id] != nil }

    /// The kinds that something can be sent to.
    var kinds: Set<PushKind> { clients.kinds }

    /// How many more pushes of a kind may be on their way.
    ///
    /// - Parameter most: how many there may be in all.
    func room(for kind: PushKind, most: Int) -> Int { min(most - counts[kind, default: 0], clients.room(for: kind)) }

    /// Of kinds that `kinds` has.
    func send(_ pushes: [(push: Push, about: InFlightPush)]) {
        for (push, about) in pushes where inFlight.updateValue(about, forKey: push.id) == nil {
            counts[push.kind, default: 0] += 1
        }
        _ = clients.send(pushes.map(\.push))
    }

    /// Sends pushes whose outcome nobody waits for, such as a start or a broadcast. Those of kinds that are not configured go nowhere.
    func sendUntracked(_ pushes: [Push]) { _ = clients.send(pushes) }

    func isBad(_ token: PushToken) -> Bool { badTokens.contains(token) }

    /// The token was registered, so it is tried again.
    ///
    /// - Returns: whether nothing was sent to it.
    @discardableResult
    func registered(_ token: PushToken) -> Bool { badTokens.remove(token) != nil }

    /// Notes what the outcome says of the token.
    ///
    /// - Returns: what the push was about; nil where nobody waits for it.
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
        // What cannot be written now is found again by the next push.
        database.attempt { _ = try $0.keep(environment, of: destination) }
        warnings.note(
            "Apple knows the token \(destination.token) in \(environment.phrase) and not in "
                + "\(destination.environment.phrase), where its registration or apns.environment has it: its pushes go to "
                + "\(environment.phrase) from now on.", about: "environment")
    }

    private func note(_ outcome: PushOutcome, of destination: PushDestination) {
        switch outcome {
        case .unregistered(let since):
            // The token is gone, unless it was registered again since.
            database.attempt { droppedTokens += try $0.drop(destination, ifRegisteredBefore: since) }
        case .badToken:
            // It stays in the table: a wrong environment in the configuration must not cost all tokens.
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

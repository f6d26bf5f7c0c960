/// Why something cannot be done. `description` is one sentence for a log or a developer.
public enum RoostError: Error, Sendable, Equatable {
    /// The hub said no, and asking again cannot help: change the request. The reasons are in `docs/errors.md`.
    case refused(reason: String)
    /// The hub said no for now: the same may succeed later.
    case busy(reason: String)
    /// Row changes cannot be served, as the hub explains.
    case subscription(reason: String)
    /// There was no answer in time. What was asked for may have happened.
    case timedOut(String)
    /// There is no connection to do it on.
    case notConnected(String)
    /// So many bytes or messages wait to be sent already.
    case bufferFull(limit: Int)
    /// A payload cannot be sent as it is.
    case encoding(String)
    /// What arrived is not of the type that was asked for.
    case decoding(String)
    /// The channel was left.
    case left
    /// The channel or the connection ended for good.
    case ended(reason: String)
    /// The calling task was cancelled.
    case cancelled
}

extension RoostError: CustomStringConvertible {
    public var description: String {
        switch self {
        case .refused(let reason): "The hub refuses it: \(reason)"
        case .busy(let reason): "The hub refuses it for now, try again later: \(reason)"
        case .subscription(let reason): "The hub cannot serve these row changes: \(reason)"
        case .timedOut(let what): "The hub gave no answer in time to \(what); it may have happened."
        case .notConnected(let what): what
        case .bufferFull(let limit): "More than \(limit) bytes or messages wait to be sent; send again later."
        case .encoding(let what): "The payload cannot be sent: \(what)"
        case .decoding(let what): "The payload cannot be read: \(what)"
        case .left: "The channel was left; ask the client for a new one."
        case .ended(let reason): "It ended for good: \(reason)"
        case .cancelled: "The task was cancelled."
        }
    }
}

/// The reason why the client cannot do something. `description` is one sentence for a log or a developer.
public enum RoostError: Error, Sendable, Equatable {
    /// The hub refused the request, and repeating it cannot help: change it. The reasons are in `docs/errors.md`.
    case refused(reason: String)
    /// The hub refused the request for now; the same request may succeed later.
    case busy(reason: String)
    /// The hub cannot serve the requested row changes, for this reason.
    case subscription(reason: String)
    /// There was no reply in time. The requested action may have happened.
    case timedOut(String)
    /// There is no connection to the hub, or it was lost before the reply.
    case notConnected(String)
    /// The limit of bytes or messages that wait to be sent is reached.
    case bufferFull(limit: Int)
    /// A payload cannot be sent as it is.
    case encoding(String)
    /// The received data is not of the requested type.
    case decoding(String)
    /// A reader cancelled the stream: it ends after this many bytes, and no more are shown to anyone. Stop writing it.
    case streamCancelled(at: Int)
    /// The stream has ended after this many bytes, and accepts no more.
    case streamEnded(at: Int)
    /// The channel was left.
    case left
    /// The channel, the connection or a writer ended for good.
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
        case .streamCancelled(let end): "A reader cancelled the stream at \(end) bytes; stop writing it."
        case .streamEnded(let end): "The stream has ended at \(end) bytes."
        case .left: "The channel was left; ask the client for a new one."
        case .ended(let reason): "It ended for good: \(reason)"
        case .cancelled: "The task was cancelled."
        }
    }
}

extension RoostError {
    /// The error for a refusal of the hub with this reason.
    init(refusal reason: String) {
        switch reason.prefix(while: { $0 != ":" }) {
        case "StreamCancelled": self = .streamCancelled(at: Self.offsetNumber(in: reason))
        case "StreamEnded": self = .streamEnded(at: Self.offsetNumber(in: reason))
        default: self = NextAction(reason: reason) == .giveUp ? .refused(reason: reason) : .busy(reason: reason)
        }
    }

    /// The number in a reason; 0 if a newer hub gives none.
    private static func offsetNumber(in reason: String) -> Int {
        Int(reason.drop { !$0.isASCII || !$0.isNumber }.prefix { $0.isASCII && $0.isNumber }) ?? 0
    }
}

/// The client's response to a refusal of the hub, by its `reason` (`docs/errors.md`; a test compares this with
/// `Wire.Refusal`).
package enum NextAction: Equatable {
    case retry, refreshToken, giveUp

    /// Parses a reason, which is `Code: sentence` or a sentence. Unknown reasons lead to a retry: a hub newer than this
    /// client may have new ones, and giving up would be final.
    package init(reason: String) {
        let code = reason.prefix { $0 != ":" }
        switch code {
        case "InvalidJWTToken":
            self = reason.hasSuffix("Token is not valid yet") ? .retry : .refreshToken
        case "MalformedJWT", "JwtSignatureError", "API key is missing": self = .refreshToken
        case "JwtSignerError":
            self = reason.contains("check your JWT secret or JWKS configuration") ? .retry : .giveUp
        case "Unauthorized": self = reason.contains("; you may join again in ") ? .retry : .giveUp
        case "TopicNameRequired", "unmatched topic", "PrivateOnly", "ChannelRateLimitReached",
            "RealtimeDisabledForConfiguration", "InvalidPostgresChanges", "message_size_exceeded",
            "payload_size_exceeded",
            "Presence track payload must be a map",
            "Presence event must be track or untrack", "StreamTopic", "StreamNotFound", "StreamEnded",
            "StreamCancelled", "StreamCloseFailed", "StreamContent", "StreamOrder", "StreamFenced", "StreamTooLarge":
            self = .giveUp
        case "UnableToReplayMessages":
            self = reason.hasSuffix("Realtime was unable to replay messages") ? .retry : .giveUp
        default: self = .retry
        }
    }

    /// Whether the text of a `system` message, which has no code, is about the token.
    package static func isAboutToken(_ message: String) -> Bool {
        message.hasPrefix("Token has expired") || message.hasPrefix("Fields `role` and `exp`")
            || message.hasPrefix("The token provided is not a valid JWT")
            || message.hasPrefix("Failed to validate JWT signature")
    }
}

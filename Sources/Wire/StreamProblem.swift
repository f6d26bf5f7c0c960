/// The reason why a request to a stream is refused, in the terms of its channel.
package enum StreamProblem: Sendable, Equatable {
    /// A stream's channel must be private.
    case isPublic
    case name
    /// The event is reserved for the hub.
    case reserved
    case notFound
    /// The end of the stream, in bytes.
    case ended(at: Int)
    case cancelled(at: Int)
    /// Another generation of the stream has the name now.
    case generation
    case content
    case order
    case fenced
    case tooLarge(Int)
    /// Postgres refused the row of the stream's close, with this sentence; the stream is still open.
    case closeFailed(String)
    case full
    case unavailable

    var code: String {
        switch self {
        case .isPublic, .name: "StreamTopic"
        case .reserved: "ReservedEvent"
        case .notFound: "StreamNotFound"
        case .ended: "StreamEnded"
        case .cancelled: "StreamCancelled"
        case .generation: "StreamGeneration"
        case .content: "StreamContent"
        case .order: "StreamOrder"
        case .fenced: "StreamFenced"
        case .tooLarge: "StreamTooLarge"
        case .closeFailed: "StreamCloseFailed"
        case .full: "StreamsFull"
        case .unavailable: "StreamsUnavailable"
        }
    }

    var sentence: String {
        switch self {
        case .isPublic: "The channel of a stream is private: join it with private: true"
        case .name: "A stream's name has 1 to 200 bytes, and no empty part between slashes"
        case .reserved:
            "Broadcasts of `stream` in the channel of a stream come from the hub alone; send append to write it"
        case .notFound: "There is no such stream: create it first"
        case .ended(let end): "The stream has ended at \(end) bytes"
        case .cancelled(let end): "The stream was cancelled at \(end) bytes: stop writing it"
        case .generation: "The member id is of another stream than the one that has this name now"
        case .content:
            "The payload is not what the stream takes: send delta for text, messages for JSON, base64 for bytes"
        case .order: "The number seq is not this producer's next; each epoch begins with 0"
        case .fenced: "Another incarnation of this producer has taken over: begin a new epoch to go on"
        case .closeFailed(let sentence):
            "The stream is still open, because the statement of streams.on_close failed: \(sentence)"
        case .tooLarge(let limit): "A stream may have \(limit) bytes (streams.bytes)"
        case .full: "The hub has no room for more in its streams; try again later"
        case .unavailable: "Streams cannot be written now; try again in a moment"
        }
    }

    var nextAction: Refusal.NextAction {
        switch self {
        case .full, .unavailable: .retry
        case .isPublic, .name, .reserved, .notFound, .ended, .cancelled, .generation, .content, .order, .fenced,
            .tooLarge,
            .closeFailed:
            .giveUp
        }
    }
}

public import Foundation

/// An update for a reader of a stream, in the order of events. The pieces of one stream add up to exactly its content:
/// nothing is missing and nothing is repeated, even across losses of the connection.
public enum StreamUpdate: Sendable, Equatable {
    /// A stream begins: the first update, and later only if the previous one was deleted and another of its name
    /// created, or if a machine that crashed had not stored all of it. Earlier content does not belong to it: discard
    /// that.
    case begins(id: String)
    /// The text that follows. A slow reader gets everything that arrived in the meantime in one piece.
    case text(String)
    /// The next message of a stream of JSON.
    case message(StreamedMessage)
    /// The bytes that follow, for a stream that is neither text nor JSON.
    case bytes(Data)
    /// Whether its writer is active.
    case state(StreamState)
    /// The end, and the last update.
    case ended(StreamEnd)
}

/// Whether the writer of an open stream is active.
public enum StreamState: String, Sendable {
    /// The stream is being written.
    case open
    /// The writer is silent, or its connection broke; it may come back.
    case stalled
}

/// The end of a stream.
public struct StreamEnd: Sendable, Equatable {
    /// The cause of a stream's end.
    public enum Reason: String, Sendable {
        /// Its writer closed it.
        case complete
        /// A reader cancelled it.
        case cancelled
        /// Its writer was gone for too long.
        case aborted
        /// It was deleted, or ended long ago and the hub no longer keeps it: ask the app's own tables.
        case deleted
    }

    public let reason: Reason
    /// The number of bytes of the stream.
    public let offset: Int
    /// The row that was written together with the end (`streams.on_close`), as the text of a JSON object; nil if there
    /// is none.
    public let row: Data?

    package init(reason: Reason, offset: Int, row: Data?) {
        self.reason = reason
        self.offset = offset
        self.row = row
    }

    /// Decodes the row that was written together with the end; nil if there is none.
    public func decodeRow<Row: Decodable>(as type: Row.Type, decoder: JSONDecoder = .roost) throws(RoostError) -> Row? {
        guard let row else { return nil }
        return try decoder.roostDecode(type, from: row)
    }
}

/// One message of a stream of JSON.
public struct StreamedMessage: Sendable, Equatable {
    /// The message as it was appended: the text of a JSON value.
    public let json: Data

    /// Decodes the message.
    public func decode<Message: Decodable>(
        as type: Message.Type, decoder: JSONDecoder = .roost
    ) throws(RoostError) -> Message {
        try decoder.roostDecode(type, from: json)
    }
}

/// The text of a stream at one moment, for a view.
public struct StreamText: Sendable, Equatable {
    /// Identifies the stream among others that had its name before.
    public let id: String
    /// The whole text so far.
    public let text: String
    /// Whether its writer is active.
    public let state: StreamState
    /// Its end; nil while it goes on.
    public let end: StreamEnd?
}

/// The content of a stream, piece by piece. Ends with the stream; throws if the hub refuses it for good.
public typealias StreamUpdates = RoostThrowingSequence<StreamUpdate>
/// The whole text of a stream, each time it has grown. Ends with the stream; throws if the hub refuses it for good.
public typealias StreamTexts = RoostThrowingSequence<StreamText>

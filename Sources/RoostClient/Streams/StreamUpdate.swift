public import Foundation

/// What a reader of a stream is told, in the order in which it happens. Put together, the pieces of one stream are exactly its
/// content: nothing is missing and nothing comes twice, over losses of the connection too.
public enum StreamUpdate: Sendable, Equatable {
    /// A stream begins: the first update, and later only where the one before was deleted and another of its name was made, or
    /// where a machine that crashed had not stored all of it. What came before is not of it: forget that.
    case begins(id: String)
    /// The text that follows. A reader that was slow gets in one piece all that came meanwhile.
    case text(String)
    /// The next message of a stream of JSON.
    case message(StreamedMessage)
    /// The bytes that follow, of a stream that is neither text nor JSON.
    case bytes(Data)
    /// Whether its writer is there.
    case state(StreamState)
    /// Nothing follows. It is the last update.
    case ended(StreamEnd)
}

/// Whether the writer of a stream that has not ended is there.
public enum StreamState: String, Sendable {
    /// It is being written.
    case open
    /// The writer is silent, or its connection broke; it may come back.
    case stalled
}

/// How a stream ended.
public struct StreamEnd: Sendable, Equatable {
    /// Who or what ended a stream.
    public enum Reason: String, Sendable {
        /// Its writer closed it.
        case complete
        /// A reader cancelled it.
        case cancelled
        /// Its writer was gone for too long.
        case aborted
        /// It was deleted, or ended long ago and the hub does not keep it any more: ask the app's own tables.
        case deleted
    }

    public let reason: Reason
    /// How many bytes the stream has.
    public let offset: Int
    /// The row that was written together with the end (`streams.on_close`), as the text of a JSON object; nil where there is
    /// none.
    public let row: Data?

    package init(reason: Reason, offset: Int, row: Data?) {
        self.reason = reason
        self.offset = offset
        self.row = row
    }

    /// Reads the row that was written together with the end; nil where there is none.
    public func decodeRow<Row: Decodable>(as type: Row.Type, decoder: JSONDecoder = .roost) throws(RoostError) -> Row? {
        guard let row else { return nil }
        return try decoder.roostDecode(type, from: row)
    }
}

/// One message of a stream of JSON.
public struct StreamedMessage: Sendable, Equatable {
    /// The message as it was appended: the text of a JSON value.
    public let json: Data

    /// Reads the message.
    public func decode<Message: Decodable>(
        as type: Message.Type, decoder: JSONDecoder = .roost
    ) throws(RoostError) -> Message {
        try decoder.roostDecode(type, from: json)
    }
}

/// A stream of text as it is at one moment: what a view shows.
public struct StreamText: Sendable, Equatable {
    /// Tells this stream from others that had its name before.
    public let id: String
    /// All of the text so far.
    public let text: String
    /// Whether its writer is there.
    public let state: StreamState
    /// How it ended; nil while it goes on.
    public let end: StreamEnd?
}

/// What a stream has and what comes, piece by piece. Ends with the stream; throws where the hub refuses it for good.
public typealias StreamUpdates = RoostThrowingSequence<StreamUpdate>
/// The whole text of a stream, each time it has grown. Ends with the stream; throws where the hub refuses it for good.
public typealias StreamTexts = RoostThrowingSequence<StreamText>

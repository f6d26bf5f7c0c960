import Foundation
package import Wire

/// The kind of a stream's content.
package enum StreamForm: Sendable {
    case text
    /// Messages, each one JSON value followed by a line feed.
    case messages
    case bytes
}

/// The news of a stream in one frame of the hub.
package struct StreamNews: Sendable, Equatable {
    /// The stream's ID at the hub; a stream that is deleted and created again has another one.
    package let id: String
    /// Whether a stream begins here, so that earlier content does not belong to it.
    package let begins: Bool
    /// Nil if the frame does not tell.
    package let form: StreamForm?
    /// The content that follows; messages each end with a line feed.
    package let bytes: [UInt8]
    /// Whether its writer is active; nil if unchanged.
    package let state: StreamState?
    package let end: StreamEnd?
}

/// The position of a channel in its stream: the requests of its joins, and the news in the hub's frames.
///
/// A part of `ChannelMachine`, and pure. It keeps no content.
package struct WatchedStream {
    /// Nil before the first frame.
    package private(set) var id: String?
    /// The number of bytes that have arrived.
    package private(set) var next = 0
    private var state: StreamState?
    /// Set once it has ended: no more news is reported.
    private var isOver = false
    /// Set until the first frame after the reply to a join.
    private var isFresh = true

    package init() {}

    package enum Outcome: Equatable {
        /// The frame has no effect: it repeats known content, or a newer hub sends something unknown to this client.
        case nothing
        case news(StreamNews)
        /// The frame does not continue the present content: the channel has to join again. The reason is one sentence.
        case misfit(String)
    }

    /// `config.stream` of a join: the position in the stream, and how long the hub gathers its news.
    package func request(gathering: Duration?) -> [UInt8] {
        JSONWriter.object { config in
            if let id {
                config.writeMember("id", id)
                config.writeMember("at", next)
            }
            if let gathering { config.writeMember("every_ms", Int(max(0, min(500, gathering / .milliseconds(1))))) }
        }
    }

    /// A join was answered: the hub continues at the requested position.
    package mutating func joinSucceeded() { isFresh = true }

    /// Handles the payload of a broadcast `stream`.
    package mutating func receiveFrame(_ frame: JSON) -> Outcome {
        guard let id = frame["id"]?.string else { return .nothing }
        guard let at = frame["at"]?.int, let next = frame["next"]?.int else { return streamGone(frame, id) }
        guard 0 <= at, at <= next else { return .nothing }
        // A hub that lost the end of a stream in a crash does not know our position, and starts over. Also, only the
        // newest part of some streams is kept: a late reader starts where that does.
        let isLate = frame["skipped"]?.bool == true
        let begins = id != self.id || isFresh && at == 0 && self.next > 0 || isLate
        guard isLate || at == (begins ? 0 : self.next) else {
            return .misfit("The hub goes on at \(at) of the stream, and \(begins ? 0 : self.next) bytes are here.")
        }
        guard let (form, bytes) = Self.parseContent(frame), bytes.count == next - at else {
            return .misfit("The stream's bytes from \(at) to \(next) are not what they are said to be.")
        }
        isFresh = false
        if begins { (self.id, state, isOver) = (id, nil, false) }
        self.next = next
        guard !isOver else { return .nothing }
        var (news, end): (StreamState?, StreamEnd?)
        if let status = frame["status"]?.string {
            news = StreamState(rawValue: status).flatMap { $0 == state ? nil : $0 }
            end = StreamEnd.Reason(rawValue: status).map { reason in
                StreamEnd(reason: reason, offset: next, row: frame["row"].map { Data($0.bytes) })
            }
        }
        guard begins || !bytes.isEmpty || news != nil || end != nil else { return .nothing }
        state = news ?? state
        isOver = end != nil
        return .news(StreamNews(id: id, begins: begins, form: form, bytes: bytes, state: news, end: end))
    }

    private mutating func streamGone(_ frame: JSON, _ id: String) -> Outcome {
        guard id == self.id, !isOver, frame["status"]?.string == StreamEnd.Reason.deleted.rawValue else {
            return .nothing
        }
        isOver = true
        let end = StreamEnd(reason: .deleted, offset: next, row: nil)
        return .news(StreamNews(id: id, begins: false, form: nil, bytes: [], state: nil, end: end))
    }

    /// Nil if it cannot be decoded.
    private static func parseContent(_ frame: JSON) -> (StreamForm?, [UInt8])? {
        if let delta = frame["delta"] { return delta.string.map { (.text, Array($0.utf8)) } }
        if let base64 = frame["base64"] { return base64.string.flatMap { Base64.decode($0.utf8) }.map { (.bytes, $0) } }
        guard let messages = frame["messages"] else { return (nil, []) }
        guard messages.kind == .array else { return nil }
        var bytes: [UInt8] = []
        for message in messages.elements {
            // In a string a line feed is an escape, so the remaining ones are between tokens.
            for byte in message.bytes { bytes.append(byte == 0x0A || byte == 0x0D ? 0x20 : byte) }
            bytes.append(0x0A)
        }
        return (.messages, bytes)
    }
}

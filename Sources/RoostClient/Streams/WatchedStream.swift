import Foundation
package import Wire

/// What a stream is made of.
package enum StreamForm: Sendable {
    case text
    /// Messages, each one JSON value and a line feed.
    case messages
    case bytes
}

/// What one frame of the hub brings of a stream.
package struct StreamNews: Sendable, Equatable {
    /// The stream, as the hub numbers it; a stream that is deleted and made again has another.
    package let id: String
    /// Whether a stream begins here, and what came before is not of it.
    package let begins: Bool
    /// Nil where the frame does not tell.
    package let form: StreamForm?
    /// What follows; of messages each with a line feed behind it.
    package let bytes: [UInt8]
    /// Whether its writer is there; nil where that is as it was.
    package let state: StreamState?
    package let end: StreamEnd?
}

/// Where a channel is in its stream: what its joins ask for, and what the hub's frames bring.
///
/// A part of `ChannelMachine`, and pure. It keeps no content.
package struct WatchedStream {
    /// Nil before the first frame.
    package private(set) var id: String?
    /// How many bytes of it have arrived.
    package private(set) var next = 0
    private var state: StreamState?
    /// It has ended, and nothing is told of it any more.
    private var isOver = false
    /// The next frame is the first behind the answer to a join.
    private var isFresh = true

    package init() {}

    package enum Outcome: Equatable {
        /// The frame is of no use: the same was told before, or a newer hub says what this client does not know.
        case nothing
        case news(StreamNews)
        /// What the hub sends does not follow what is here: the channel has to join again. The reason is one sentence.
        case misfit(String)
    }

    /// `config.stream` of a join: where the stream goes on, and how long the hub gathers its news.
    package func request(gathering: Duration?) -> [UInt8] {
        JSONWriter.object { config in
            if let id {
                config.member("id", id)
                config.member("at", next)
            }
            if let gathering { config.member("every_ms", Int(max(0, min(500, gathering / .milliseconds(1))))) }
        }
    }

    /// A join was answered: the hub goes on where the join asked for.
    package mutating func joined() { isFresh = true }

    /// Takes the payload of a broadcast `stream`.
    package mutating func take(_ frame: JSON) -> Outcome {
        guard let id = frame["id"]?.string else { return .nothing }
        guard let at = frame["at"]?.int, let next = frame["next"]?.int else { return gone(frame, id) }
        guard 0 <= at, at <= next else { return .nothing }
        // A hub that lost the end of a stream with its machine does not know our place, and begins anew.
        // And of some streams only the newest is kept: who is too late begins where that does.
        let isLate = frame["skipped"]?.bool == true
        let begins = id != self.id || isFresh && at == 0 && self.next > 0 || isLate
        guard isLate || at == (begins ? 0 : self.next) else {
            return .misfit("The hub goes on at \(at) of the stream, and \(begins ? 0 : self.next) bytes are here.")
        }
        guard let (form, bytes) = Self.content(frame), bytes.count == next - at else {
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

    private mutating func gone(_ frame: JSON, _ id: String) -> Outcome {
        guard id == self.id, !isOver, frame["status"]?.string == StreamEnd.Reason.deleted.rawValue else {
            return .nothing
        }
        isOver = true
        let end = StreamEnd(reason: .deleted, offset: next, row: nil)
        return .news(StreamNews(id: id, begins: false, form: nil, bytes: [], state: nil, end: end))
    }

    /// Nil where it cannot be read.
    private static func content(_ frame: JSON) -> (StreamForm?, [UInt8])? {
        if let delta = frame["delta"] { return delta.string.map { (.text, Array($0.utf8)) } }
        if let base64 = frame["base64"] { return base64.string.flatMap { Base64.decode($0.utf8) }.map { (.bytes, $0) } }
        guard let messages = frame["messages"] else { return (nil, []) }
        guard messages.kind == .array else { return nil }
        var bytes: [UInt8] = []
        for message in messages.elements {
            // Within a string a line feed is an escape, so all that are left stand between tokens.
            for byte in message.bytes { bytes.append(byte == 0x0A || byte == 0x0D ? 0x20 : byte) }
            bytes.append(0x0A)
        }
        return (.messages, bytes)
    }
}

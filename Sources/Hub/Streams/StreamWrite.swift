package import Streams
import Wire

/// The special meaning of a broadcast in a stream's channel: the events `append`, `close` and `cancel` act on the
/// stream, and are sent to no other member.
package enum StreamWrite: Sendable {
    /// Bytes to append to the stream, its end, or both.
    case append(StreamAppend)
    /// Cancels the stream, but only this generation if one is named.
    case cancel(StreamID?)

    /// Nil for an ordinary broadcast.
    ///
    /// - Throws: the flaw of a broadcast with a special meaning.
    init?(_ message: BroadcastMessage) throws(Refusal) {
        let event: String
        let payload: JSON?
        switch message {
        case .text(let whole):
            let message = JSON(trusted: whole[...])
            var isReserved = false
            // Clients disagree on which of two members with the same name counts.
            message.forEachMember { member in
                if member.isNamed("event"), member.value.string?.hasSameBytes(as: ChannelStream.event) == true {
                    isReserved = true
                }
            }
            guard !isReserved else { throw .stream(.reserved) }
            guard let name = message["event"]?.string else { return nil }
            event = name
            payload = message["payload"]
        case .user(let user):
            event = user.event
            if user.encoding == .json {
                do { payload = try JSON(parsing: user.payload) } catch { throw .stream(.content) }
            } else {
                payload = nil
            }
        }
        switch event {
        case ChannelStream.event: throw .stream(.reserved)
        case "cancel": self = .cancel(try Self.parseGeneration(payload))
        case "append", "close":
            var append = StreamAppend(body: [])
            append.closes = event == "close" || payload?["close"]?.bool == true
            if case .user(let user) = message, user.encoding == .raw {
                append.body = Array(user.payload)
            } else if let payload {
                append.body = try Self.parseBody(payload)
                append.producer = try Self.parseProducer(payload)
                append.generation = try Self.parseGeneration(payload)
            }
            self = .append(append)
        default: return nil
        }
    }

    private static func parseBody(_ payload: JSON) throws(Refusal) -> [UInt8] {
        if let delta = payload["delta"] {
            guard let text = delta.string else { throw .stream(.content) }
            return Array(text.utf8)
        }
        if let messages = payload["messages"] {
            guard messages.kind == .array else { throw .stream(.content) }
            return Array(messages.bytes)
        }
        if let base64 = payload["base64"] {
            guard let bytes = base64.string.flatMap({ Base64.decode($0.utf8) }) else { throw .stream(.content) }
            return bytes
        }
        return []
    }

    /// Parses the member `id`, which names a generation, as in frames of the stream.
    private static func parseGeneration(_ payload: JSON?) throws(Refusal) -> StreamID? {
        guard let id = payload?["id"], !id.isNull else { return nil }
        guard let generation = id.string.flatMap({ StreamID($0) }) else { throw .stream(.generation) }
        return generation
    }

    private static func parseProducer(_ payload: JSON) throws(Refusal) -> ProducerStamp? {
        guard let producer = payload["producer"] else { return nil }
        guard let id = producer.string, let sequence = payload["seq"]?.int,
            let stamp = ProducerStamp(told: id, epoch: payload["epoch"]?.int ?? 0, sequence: sequence)
        else { throw .stream(.order) }
        return stamp
    }

    var bytes: Int { if case .append(let append) = self { append.body.count } else { 0 } }
}

extension StreamBearer {
    /// The bearer of this token.
    package init(_ claims: Claims) { self.init(role: claims.role, claims: claims.json) }
}

extension StreamProblem {
    init(_ refusal: StreamRefusal) {
        switch refusal {
        case .notFound, .gone, .otherConfiguration: self = .notFound
        case .ended(let snapshot):
            self =
                snapshot.status.ending?.reason == .cancelled ? .cancelled(at: snapshot.end) : .ended(at: snapshot.end)
        case .otherGeneration: self = .generation
        case .contentType, .emptyBody, .notJSON, .emptyArray, .notUTF8: self = .content
        case .staleEpoch: self = .fenced
        case .epochMustBeginAtZero, .epochTooFar, .sequenceGap, .sequenceRegression: self = .order
        case .streamTooLarge(let limit): self = .tooLarge(limit)
        case .tooManyProducers, .tooMuch, .overShare, .noRoom: self = .full
        case .closeFailed(let sentence): self = .closeFailed(sentence)
        case .unavailable: self = .unavailable
        }
    }
}

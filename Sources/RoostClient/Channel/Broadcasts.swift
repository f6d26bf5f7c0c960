import Synchronization
import Wire

/// A message that another client sent to the channel, or SQL did.
public struct Broadcast<Payload: Sendable>: Sendable {
    /// The name that it was sent under.
    public let event: String
    public let payload: Payload
    /// What the hub says of the message; nil where it says nothing.
    public let meta: BroadcastMeta?
    /// How many messages of this name were dropped before this one, because the consumer was too slow for the buffer.
    public let missedBefore: Int
    /// How many messages of this name before this one were not of the type that was asked for.
    public let unreadableBefore: Int
}

/// What the hub says of a broadcast.
public struct BroadcastMeta: Sendable, Equatable {
    /// The id of a message that was sent by SQL; nil for others.
    public let id: String?
    /// Whether the message was sent earlier, and comes from the hub's history because this client missed it.
    public let isReplayed: Bool
    /// Where the history goes on behind this message; the client resumes there by itself.
    let history: String?

    init(_ json: JSON) {
        id = json["id"]?.string
        isReplayed = json["replayed"]?.bool ?? false
        history = json["history"]?.string
    }
}

/// A broadcast as it arrived. What it carries is not decoded yet.
package struct IncomingBroadcast: Sendable {
    package let event: String
    package let payload: ArraySlice<UInt8>
    package let isJSON: Bool
    package let meta: BroadcastMeta?

    /// The broadcast in a text or binary frame; nil where there is none in it.
    package init?(_ body: ServerMessage.Body) {
        switch body {
        case .json(let json):
            guard let event = json["event"]?.string else { return nil }
            self.event = event
            payload = json["payload"]?.bytes ?? Array("{}".utf8)[...]
            isJSON = true
            meta = json["meta"].map(BroadcastMeta.init)
        case .broadcast(let broadcast):
            event = broadcast.event
            payload = broadcast.payload
            isJSON = broadcast.encoding == .json
            meta = broadcast.metadata.flatMap { JSON($0[...]) }.map(BroadcastMeta.init)
        }
    }
}

/// Makes typed broadcasts of what arrived, for one sequence. What cannot be read is counted and never thrown, so that no
/// client can end another's sequence by sending it something odd.
final class BroadcastReader<Payload: Sendable>: Sendable {
    private struct Counts {
        var missed = 0
        var unreadable = 0
    }

    private let counts = Mutex(Counts())
    private let decode: @Sendable (IncomingBroadcast) throws(RoostError) -> Payload?

    /// - Parameter decode: reads a payload; nil says that the broadcast is not for this sequence.
    init(_ decode: @escaping @Sendable (IncomingBroadcast) throws(RoostError) -> Payload?) { self.decode = decode }

    /// The next broadcast for the consumer; nil where this delivery is none.
    func read(_ delivery: Mailbox<IncomingBroadcast>.Delivery) -> Broadcast<Payload>? {
        switch delivery {
        case .missed(let count):
            counts.withLock { $0.missed += count }
            return nil
        case .element(let broadcast):
            do throws(RoostError) {
                guard let payload = try decode(broadcast) else { return nil }
                let before = counts.withLock { counts in
                    defer { counts = Counts() }
                    return counts
                }
                return Broadcast(
                    event: broadcast.event, payload: payload, meta: broadcast.meta, missedBefore: before.missed,
                    unreadableBefore: before.unreadable)
            } catch {
                counts.withLock { $0.unreadable += 1 }
                return nil
            }
        }
    }
}

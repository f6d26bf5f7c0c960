import Synchronization
import Wire

/// A message sent to the channel by another client or by SQL.
public struct Broadcast<Payload: Sendable>: Sendable {
    /// The event's name.
    public let event: String
    public let payload: Payload
    /// The hub's metadata; nil if there is none.
    public let meta: BroadcastMeta?
    /// The number of messages of this name that were dropped before this one, because the consumer was too slow for the
    /// buffer.
    public let missedBefore: Int
    /// The number of messages of this name before this one that could not be decoded as the requested type.
    public let unreadableBefore: Int
}

/// The hub's metadata of a broadcast.
public struct BroadcastMeta: Sendable, Equatable {
    /// The ID of a message that was sent by SQL; nil for others.
    public let id: String?
    /// True if the message was sent earlier, and comes from the hub's history because this client missed it.
    public let isReplayed: Bool
    /// The position in the history after this message; the client resumes there automatically.
    let history: String?

    init(_ json: JSON) {
        id = json["id"]?.string
        isReplayed = json["replayed"]?.bool ?? false
        history = json["history"]?.string
    }
}

/// A broadcast as it arrived, with an undecoded payload.
package struct IncomingBroadcast: Sendable {
    package let event: String
    package let payload: ArraySlice<UInt8>
    package let isJSON: Bool
    package let meta: BroadcastMeta?

    /// Reads a text or binary frame; nil if it contains no broadcast.
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

/// Converts incoming broadcasts to typed ones for one sequence. Undecodable ones are counted and never thrown, so that
/// no client can end another's sequence by an odd message.
final class BroadcastReader<Payload: Sendable>: Sendable {
    private struct Counts {
        var missed = 0
        var unreadable = 0
    }

    private let counts = Mutex(Counts())
    private let decode: @Sendable (IncomingBroadcast) throws(RoostError) -> Payload?

    /// - Parameter decode: decodes a payload; nil if the broadcast is not for this sequence.
    init(_ decode: @escaping @Sendable (IncomingBroadcast) throws(RoostError) -> Payload?) { self.decode = decode }

    /// The next broadcast for the consumer; nil if this element yields none.
    func makeBroadcast(_ delivery: Mailbox<IncomingBroadcast>.Delivery) -> Broadcast<Payload>? {
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

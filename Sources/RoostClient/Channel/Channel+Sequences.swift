public import Foundation
import Wire

extension Channel {
    /// The members of the channel: first all of them, then every difference. A slow consumer gets the newest state,
    /// with all differences since its last one.
    ///
    /// A loss of the connection empties the channel only if it lasts longer than the grace window.
    public var presence: PresenceUpdates {
        let mailbox = Mailbox<[String: [PresenceMember]]>(limit: 1, countsMissed: false)
        let lease = attachSink(.presence(mailbox))
        let last = PresenceDifferences()
        return RoostSequence { await mailbox.element(lease).map(last.makeUpdate) }
    }

    /// The number of members. Requires `ChannelConfiguration.presence` to be `.occupancy`.
    public var occupancy: OccupancyUpdates {
        let mailbox = Mailbox<Occupancy>(limit: 1, countsMissed: false)
        let lease = attachSink(.occupancy(mailbox))
        return RoostSequence { await mailbox.element(lease) }
    }

    /// The users typing in the channel. A slow consumer gets the newest state.
    public var typing: TypingUpdates {
        let mailbox = Mailbox<TypingSet>(limit: 1, countsMissed: false)
        let lease = attachSink(.typing(mailbox))
        return RoostSequence { await mailbox.element(lease) }
    }

    /// The events of the channel, for logs and UIs. For a slow consumer the last 256 are kept.
    public var events: ChannelEvents {
        let mailbox = Mailbox<ChannelEvent>(limit: 256, countsMissed: false)
        let lease = attachSink(.events(mailbox))
        return RoostSequence { await mailbox.element(lease) }
    }

    /// Every frame of the channel, undecoded. For a slow consumer the last `Configuration.bufferLimit` frames are kept,
    /// and the next one has the number of those dropped.
    public var messages: ChannelMessages {
        let mailbox = Mailbox<ServerMessage>(limit: core.configuration.bufferLimit)
        let lease = attachSink(.messages(mailbox))
        return RoostSequence {
            var missed = 0
            return await mailbox.nextOrEnd(lease) { delivery in
                switch delivery {
                case .missed(let count):
                    missed += count
                    return nil
                case .element(let message): return ChannelMessage(message, missedBefore: missed)
                }
            }
        }
    }

    /// The broadcasts of one name, with payloads decoded as `Payload`.
    public func broadcasts<Payload: Decodable & Sendable>(
        _ event: String, of type: Payload.Type
    ) -> Broadcasts<Payload> {
        let decoder = core.configuration.decoder
        return broadcasts(event) { broadcast throws(RoostError) in
            guard broadcast.isJSON else { return nil }
            return try decoder.roostDecode(type, from: Data(broadcast.payload))
        }
    }

    /// The broadcasts of one name with raw bytes.
    public func byteBroadcasts(_ event: String) -> Broadcasts<Data> {
        broadcasts(event) { broadcast throws(RoostError) in broadcast.isJSON ? nil : Data(broadcast.payload) }
    }

    private func broadcasts<Payload: Sendable>(
        _ event: String, _ read: @escaping @Sendable (IncomingBroadcast) throws(RoostError) -> Payload?
    ) -> Broadcasts<Payload> {
        let mailbox = Mailbox<IncomingBroadcast>(limit: core.configuration.bufferLimit)
        let lease = attachSink(.broadcasts(event, mailbox))
        let reader = BroadcastReader(read)
        return RoostThrowingSequence { () async throws(RoostError) in
            try await mailbox.nextValue(lease, reader.makeBroadcast)
        }
    }

    /// Connects a buffer to the channel until the lease ends.
    ///
    /// - Parameter request: the row changes for the buffer; nil for all other sequences.
    func attachSink(_ sink: Sink, _ request: ChangeRequest? = nil) -> Lease {
        let subscription = core.nextID()
        core.postCommand(.attach(id, subscription, sink, request))
        return Lease { [self] in core.postCommand(.detach(id, subscription)) }
    }
}

/// The members of a channel over time. Ends with the channel.
public typealias PresenceUpdates = RoostSequence<PresenceUpdate>
/// The number of members of a channel over time. Ends with the channel.
public typealias OccupancyUpdates = RoostSequence<Occupancy>
/// The users typing in a channel over time. Ends with the channel.
public typealias TypingUpdates = RoostSequence<TypingSet>
/// The events of a channel. Ends with the channel, with `.left` or `.failed`.
public typealias ChannelEvents = RoostSequence<ChannelEvent>
/// All frames of a channel. Ends with the channel.
public typealias ChannelMessages = RoostSequence<ChannelMessage>
/// The broadcasts of one name in a channel. Ends when the channel is left; throws when it ends for good.
public typealias Broadcasts<Payload: Sendable> = RoostThrowingSequence<Broadcast<Payload>>

/// An event of a channel, for logs and UIs that show it.
public enum ChannelEvent: Sendable, Equatable {
    /// The hub accepted the join. `resumed` tells whether every row change since the last connection arrives.
    case joined(resumed: Bool)
    /// The hub cannot send the row changes that were missed: row data has to be loaded again. Change sequences report
    /// this, too. The reason is one sentence.
    case reloadNeeded(reason: String)
    /// Broadcasts were missed that the hub no longer keeps. The reason is one sentence.
    case historyIncomplete(reason: String)
    /// The connection or the channel was lost; the client recovers automatically. The reason is one sentence.
    case lost(reason: String)
    /// A join was refused for now; the next one follows after this time.
    case rejoining(in: Duration, reason: String)
    /// The hub sent a `system` message with this text.
    case notice(String)
    /// The channel ended for good.
    case failed(RoostError)
    /// The app left the channel.
    case left
}

/// A raw frame of a channel: the output of `roost tail`, and access to events that this library does not know.
public struct ChannelMessage: Sendable, Equatable {
    /// The event's name in the protocol: `broadcast`, `postgres_changes`, `presence_diff`, `phx_reply`, …
    public let event: String
    /// The payload, as the text of a JSON object.
    public let payload: Data
    /// The number of frames that were dropped before this one, because the consumer was too slow for the buffer.
    public let missedBefore: Int

    /// For raw bytes, which have no text, the payload has the name and the number of bytes.
    init(_ message: ServerMessage, missedBefore: Int) {
        self.missedBefore = missedBefore
        event = message.event
        if let payload = message.payload {
            self.payload = Data(payload.bytes)
        } else if case .broadcast(let broadcast) = message.body {
            var text = Array("{\"event\":".utf8)
            JSONString.encode(broadcast.event, into: &text)
            text += ",\"bytes\":\(broadcast.payload.count)}".utf8
            payload = Data(text)
        } else {
            payload = Data("{}".utf8)
        }
    }
}

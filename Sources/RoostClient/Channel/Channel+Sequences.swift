public import Foundation
import Wire

extension Channel {
    /// Who is in the channel: at first all who are there, then every difference. A slow consumer gets the newest state,
    /// with all differences since its last one.
    ///
    /// A loss of the connection empties the channel only when it lasts longer than the grace window.
    public var presence: PresenceUpdates {
        let mailbox = Mailbox<[String: [PresenceMember]]>(limit: 1, countsMissed: false)
        let lease = attach(.presence(mailbox))
        let last = PresenceDifferences()
        return RoostSequence { await mailbox.element(lease).map(last.update) }
    }

    /// How many are in the channel. `ChannelConfiguration.presence` has to be `.occupancy`.
    public var occupancy: OccupancyUpdates {
        let mailbox = Mailbox<Occupancy>(limit: 1, countsMissed: false)
        let lease = attach(.occupancy(mailbox))
        return RoostSequence { await mailbox.element(lease) }
    }

    /// Who is typing in the channel. A slow consumer gets the newest state.
    public var typing: TypingUpdates {
        let mailbox = Mailbox<TypingSet>(limit: 1, countsMissed: false)
        let lease = attach(.typing(mailbox))
        return RoostSequence { await mailbox.element(lease) }
    }

    /// What happens to the channel, for logs and for UIs. A slow consumer keeps the last 256 events.
    public var events: ChannelEvents {
        let mailbox = Mailbox<ChannelEvent>(limit: 256, countsMissed: false)
        let lease = attach(.events(mailbox))
        return RoostSequence { await mailbox.element(lease) }
    }

    /// Every frame of the channel, undecoded. A slow consumer keeps the last `Configuration.bufferLimit` frames, and the
    /// next one says how many were dropped.
    public var messages: ChannelMessages {
        let mailbox = Mailbox<ServerMessage>(limit: core.configuration.bufferLimit)
        let lease = attach(.messages(mailbox))
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

    /// The broadcasts of one name, their payloads read as `Payload`.
    public func broadcasts<Payload: Decodable & Sendable>(
        _ event: String, of type: Payload.Type
    ) -> Broadcasts<Payload> {
        let decoder = core.configuration.decoder
        return broadcasts(event) { broadcast throws(RoostError) in
            guard broadcast.isJSON else { return nil }
            return try decoder.roostDecode(type, from: Data(broadcast.payload))
        }
    }

    /// The broadcasts of one name that are raw bytes.
    public func byteBroadcasts(_ event: String) -> Broadcasts<Data> {
        broadcasts(event) { broadcast throws(RoostError) in broadcast.isJSON ? nil : Data(broadcast.payload) }
    }

    private func broadcasts<Payload: Sendable>(
        _ event: String, _ read: @escaping @Sendable (IncomingBroadcast) throws(RoostError) -> Payload?
    ) -> Broadcasts<Payload> {
        let mailbox = Mailbox<IncomingBroadcast>(limit: core.configuration.bufferLimit)
        let lease = attach(.broadcasts(event, mailbox))
        let reader = BroadcastReader(read)
        return RoostThrowingSequence { () async throws(RoostError) in
            try await mailbox.next(lease, reader.read)
        }
    }

    /// Makes the channel feed this buffer, until the lease ends.
    ///
    /// - Parameter request: the row changes that the buffer is for; nil for all other sequences.
    func attach(_ sink: Sink, _ request: ChangeRequest? = nil) -> Lease {
        let subscription = core.nextID()
        core.post(.attach(id, subscription, sink, request))
        return Lease { [self] in core.post(.detach(id, subscription)) }
    }
}

/// Who is in a channel, over time. Ends when the channel does.
public typealias PresenceUpdates = RoostSequence<PresenceUpdate>
/// How many are in a channel, over time. Ends when the channel does.
public typealias OccupancyUpdates = RoostSequence<Occupancy>
/// Who is typing in a channel, over time. Ends when the channel does.
public typealias TypingUpdates = RoostSequence<TypingSet>
/// What happens to a channel. Ends when the channel does, with `.left` or `.failed`.
public typealias ChannelEvents = RoostSequence<ChannelEvent>
/// All frames of a channel. Ends when the channel does.
public typealias ChannelMessages = RoostSequence<ChannelMessage>
/// The broadcasts of one name in a channel. Ends when the channel is left; throws when it ends for good.
public typealias Broadcasts<Payload: Sendable> = RoostThrowingSequence<Broadcast<Payload>>

/// Something that happened to a channel, for logs and for UIs that show it.
public enum ChannelEvent: Sendable, Equatable {
    /// The hub let the client in. `resumed` says whether every row change since the last connection comes.
    case joined(resumed: Bool)
    /// The hub cannot bring the row changes that were missed: row data has to be loaded again. Change sequences say so,
    /// too. The reason is one sentence.
    case reloadNeeded(reason: String)
    /// Broadcasts were missed that the hub does not keep any more. The reason is one sentence.
    case historyIncomplete(reason: String)
    /// The connection or the channel was lost; the client comes back by itself. The reason is one sentence.
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

/// A frame of a channel as it came: what `roost tail` prints, and a way to events that this library does not know.
public struct ChannelMessage: Sendable, Equatable {
    /// The name of the event in the protocol: `broadcast`, `postgres_changes`, `presence_diff`, `phx_reply`, …
    public let event: String
    /// The payload, as the text of a JSON object.
    public let payload: Data
    /// How many frames were dropped before this one, because the consumer was too slow for the buffer.
    public let missedBefore: Int

    /// Of raw bytes, which have no text, the payload says the name and how many they are.
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

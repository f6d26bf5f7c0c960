import Foundation

/// A stream of the hub: a reply that grows, text token by token, speech chunk by chunk, messages one by one. `RoostClient.stream`
/// makes one; all of it may be called from any thread.
///
/// Reading begins with what the stream has, and waits for one that is not there yet. It goes on over losses of the connection at the
/// byte where it broke off.
public final class RoostStream: Sendable {
    /// What the stream is called, such as `reply/42`.
    public let name: String
    /// The private channel of the stream, which is joined while somebody reads or writes the stream.
    public let channel: Channel

    static let topicPrefix = "realtime:stream:"

    init(_ name: String, _ channel: Channel) {
        self.name = name
        self.channel = channel
    }

    /// What the stream has and what comes, piece by piece. It joins the channel by itself, and ends with the stream.
    ///
    /// A slow consumer gets larger pieces, and none is left out.
    public var updates: StreamUpdates {
        let bell = Mailbox<Void>(limit: 1, countsMissed: false)
        let lease = channel.attach(.stream(bell))
        let (replica, position) = (channel.replica, StreamReadPosition(channel.replica))
        return RoostThrowingSequence { () async throws(RoostError) in
            try await bell.value(lease) { position.update(replica) }
        }
    }

    /// The whole text, each time it has grown, for a view that shows it. It joins the channel by itself, and ends with the stream.
    ///
    /// A slow consumer gets the newest text. Of a stream that is no text the texts are empty.
    public var texts: StreamTexts {
        let bell = Mailbox<Void>(limit: 1, countsMissed: false)
        let lease = channel.attach(.stream(bell))
        let (replica, position) = (channel.replica, StreamReadPosition(channel.replica))
        return RoostThrowingSequence { () async throws(RoostError) in
            try await bell.value(lease) { position.text(replica) }
        }
    }

    /// Makes a writer of the stream, which has to be there: the backend creates it by `PUT /streams/NAME`.
    ///
    /// - Parameters:
    ///   - producer: tells the hub this writer from others, with 1 to 200 bytes; nil takes one that nobody else has.
    ///   - epoch: counts the incarnations of a producer that has a name of its own. One with a higher epoch takes over, and the
    ///     hub refuses the one before it.
    public func writer(producer: String? = nil, epoch: Int = 0) -> StreamWriter {
        StreamWriter(channel, producer ?? UUID().uuidString.lowercased(), epoch)
    }

    /// Ends the stream where it is, for everybody: no reader is shown a byte more, and its writer is told. Returns when the hub
    /// has done so, and also where the stream had ended already; readers are told where and how (``StreamEnd``).
    ///
    /// Without a connection it goes on trying, until its task is cancelled.
    public func cancel() async throws(RoostError) {
        while true {
            try await channel.subscribe()
            do throws(RoostError) {
                return try await channel.send(event: "cancel", payload: [String: String]())
            } catch .notConnected, .timedOut {
                // It may have happened, and may be asked for again.
                continue
            }
        }
    }

    /// Leaves the channel of the stream: all sequences end, and writers with them.
    public func leave() async { await channel.leave() }
}

extension RoostClient {
    /// The stream of that name.
    ///
    /// - Parameters:
    ///   - name: as the backend created it, such as `reply/42`.
    ///   - configure: changes the configuration of the stream's channel. Like a channel's it counts only for the first who asks.
    public func stream(_ name: String, configure: (inout ChannelConfiguration) -> Void = { _ in }) -> RoostStream {
        let channel = channel(RoostStream.topicPrefix + name) { configuration in
            configuration.isPrivate = true
            configure(&configuration)
        }
        return RoostStream(name, channel)
    }
}

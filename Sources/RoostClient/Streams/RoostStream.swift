import Foundation

/// A stream of the hub: a reply that grows, text token by token, speech chunk by chunk, messages one by one. Created by
/// `RoostClient.stream`; callable from any thread.
///
/// Reading starts with the present content, and waits for a stream that does not exist yet. After a loss of the
/// connection it resumes at the byte where it broke off.
public final class RoostStream: Sendable {
    /// The stream's name, such as `reply/42`.
    public let name: String
    /// The private channel of the stream, joined while the stream is read or written.
    public let channel: Channel

    static let topicPrefix = "realtime:stream:"

    init(_ name: String, _ channel: Channel) {
        self.name = name
        self.channel = channel
    }

    /// The stream's content, piece by piece, including what is appended later. Joins the channel automatically, and
    /// ends with the stream.
    ///
    /// A slow consumer gets larger pieces, and none is left out.
    public var updates: StreamUpdates {
        let bell = Mailbox<Void>(limit: 1, countsMissed: false)
        let lease = channel.attachSink(.stream(bell))
        let (replica, position) = (channel.replica, StreamReadPosition(channel.replica))
        return RoostThrowingSequence { () async throws(RoostError) in
            try await bell.awaitValue(lease) { position.nextUpdate(replica) }
        }
    }

    /// The whole text each time it has grown, for a view that shows it. Joins the channel automatically, and ends with
    /// the stream.
    ///
    /// A slow consumer gets the newest text. If the stream is not text, the texts are empty.
    public var texts: StreamTexts {
        let bell = Mailbox<Void>(limit: 1, countsMissed: false)
        let lease = channel.attachSink(.stream(bell))
        let (replica, position) = (channel.replica, StreamReadPosition(channel.replica))
        return RoostThrowingSequence { () async throws(RoostError) in
            try await bell.awaitValue(lease) { position.nextText(replica) }
        }
    }

    /// Creates a writer of the stream, which must exist: the backend creates it by `PUT /streams/NAME`.
    ///
    /// - Parameters:
    ///   - producer: identifies this writer at the hub, with 1 to 200 bytes; nil for a unique one.
    ///   - epoch: the incarnation of a producer with a name of its own. One with a higher epoch takes over, and the hub
    ///     refuses the previous one.
    public func writer(producer: String? = nil, epoch: Int = 0) -> StreamWriter {
        StreamWriter(channel, producer ?? UUID().uuidString.lowercased(), epoch)
    }

    /// Ends the stream at its present position for everyone: readers get no further byte, and its writer is told.
    /// Returns once the hub has done so, and also if the stream had ended already; readers learn where and how
    /// (``StreamEnd``).
    ///
    /// Without a connection it keeps trying until its task is cancelled.
    public func cancel() async throws(RoostError) {
        while true {
            try await channel.subscribe()
            do throws(RoostError) {
                return try await channel.send(event: "cancel", payload: [String: String]())
            } catch .notConnected, .timedOut {
                // It may have happened, and may be repeated.
                continue
            }
        }
    }

    /// Leaves the channel of the stream: all sequences and writers end.
    public func leave() async { await channel.leave() }
}

extension RoostClient {
    /// The stream of that name.
    ///
    /// - Parameters:
    ///   - name: the name under which the backend created it, such as `reply/42`.
    ///   - configure: changes the configuration of the stream's channel. As with a channel, only the first call's
    ///     configuration counts.
    public func stream(_ name: String, configure: (inout ChannelConfiguration) -> Void = { _ in }) -> RoostStream {
        let channel = channel(RoostStream.topicPrefix + name) { configuration in
            configuration.isPrivate = true
            configure(&configuration)
        }
        return RoostStream(name, channel)
    }
}

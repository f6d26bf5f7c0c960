public import Foundation

/// Row changes, broadcasts, presence and typing under one name. `RoostClient.channel` makes one; all of it may be called
/// from any thread.
///
/// A channel stays joined while somebody holds it or one of its sequences, over all losses of the connection, until
/// `leave()`.
public final class Channel: Sendable {
    /// The whole name of the channel, with `realtime:` in front.
    public let topic: String
    let id: ChannelID
    let core: ClientCore
    /// What the channel's stream has; empty where its topic is none.
    let replica = StreamReplica()
    private let flag = ChannelFlag()

    init(_ topic: String, _ configuration: ChannelConfiguration, _ core: ClientCore) {
        self.topic = topic
        self.core = core
        id = core.nextID()
        core.post(.open(id, topic: topic, configuration, flag, replica))
    }

    deinit { core.post(.release(id)) }

    /// Whether the channel was left or has ended for good; then `RoostClient.channel` makes a new one.
    public var isOver: Bool { flag.isOver }

    /// Joins the channel. Returns when the hub has answered and row changes are live: every commit from then on arrives.
    ///
    /// Without a connection it goes on trying, until its task is cancelled. It throws when the hub refuses the channel or
    /// its row changes for good.
    public func subscribe() async throws(RoostError) { try await core.call(id, .subscribe) }

    /// Leaves the channel at once: the others see the presence go, and all sequences end.
    public func leave() async {
        do throws(RoostError) { try await core.call(id, .leave) } catch {
            // Whatever it says, the channel is left.
        }
    }
}

extension Channel {
    /// Sends a message to the others of the channel.
    ///
    /// While the channel is on its way back messages wait for it, in the order of the calls, for at most
    /// `Configuration.sendTimeout`. After an error `.timedOut` or `.notConnected` the message may have arrived or not.
    ///
    /// - Parameters:
    ///   - event: the name that the others listen to.
    ///   - payload: has to encode to a JSON object; other clients take nothing else.
    public func send(event: String, payload: some Encodable & Sendable) async throws(RoostError) {
        let json = try encode(payload)
        try await core.call(id, .send(.broadcast(event: event, payload: json, isJSON: true)))
    }

    /// Sends raw bytes to the others of the channel. Clients of protocol version 1 do not get them.
    public func send(event: String, bytes: Data) async throws(RoostError) {
        guard max(event.utf8.count, topic.utf8.count) <= 255 else {
            throw .encoding("The names of the event and the channel may have 255 bytes each.")
        }
        try await core.call(id, .send(.broadcast(event: event, payload: Array(bytes), isJSON: false)))
    }

    /// Makes this client present in the channel with a payload, again after each reconnect, until `untrack`. Returns when
    /// the hub has taken it; without a connection at once.
    ///
    /// - Parameter payload: has to encode to a JSON object.
    public func track(_ payload: some Encodable & Sendable) async throws(RoostError) {
        try await core.call(id, .track(try encode(payload)))
    }

    /// Ends this client's presence in the channel. Does not wait for the hub.
    public func untrack() { core.post(.untrack(id)) }

    /// Says that the user types, or has stopped. Call it at each keystroke: what the hub does not need is not sent. The
    /// hub ends a typist that says nothing for 3 s, and one whose message arrives.
    public func typing(_ isTyping: Bool) { core.post(.typing(id, isTyping, Self.typing(isTyping, nil))) }

    /// Says that the user types, or has stopped, and who that is.
    ///
    /// - Parameters:
    ///   - isTyping: whether the user types. Call it at each keystroke: what the hub does not need is not sent.
    ///   - payload: who types, as an object; other RoostClients tell typists apart by the `user_id` in it.
    public func typing(_ isTyping: Bool, payload: some Encodable & Sendable) throws(RoostError) {
        core.post(.typing(id, isTyping, Self.typing(isTyping, try encode(payload))))
    }

    private static func typing(_ isTyping: Bool, _ object: [UInt8]?) -> [UInt8] {
        let head = Array("{\"typing\":\(isTyping)".utf8)
        guard let object, object.count > 2 else { return head + [UInt8(ascii: "}")] }
        return head + [UInt8(ascii: ",")] + object.dropFirst()
    }

    private func encode(_ payload: some Encodable) throws(RoostError) -> [UInt8] {
        let bytes: [UInt8]
        do { bytes = Array(try core.configuration.encoder.encode(payload)) } catch {
            throw .encoding(String(describing: error))
        }
        guard bytes.first == UInt8(ascii: "{") else { throw .encoding("It must be a JSON object.") }
        return bytes
    }
}

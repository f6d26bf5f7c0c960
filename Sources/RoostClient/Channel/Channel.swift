public import Foundation

/// Row changes, broadcasts, presence and typing under one name. Created by `RoostClient.channel`; callable from any
/// thread.
///
/// A channel stays joined, across all losses of the connection, while it or one of its sequences is referenced, until
/// `leave()`.
public final class Channel: Sendable {
    /// The full name of the channel, beginning with `realtime:`.
    public let topic: String
    let id: ChannelID
    let core: ClientCore
    /// The content of the channel's stream; empty if its topic is not a stream's.
    let replica = StreamReplica()
    private let flag = ChannelFlag()

    init(_ topic: String, _ configuration: ChannelConfiguration, _ core: ClientCore) {
        self.topic = topic
        self.core = core
        id = core.nextID()
        core.postCommand(.open(id, topic: topic, configuration, flag, replica))
    }

    deinit { core.postCommand(.release(id)) }

    /// Whether the channel was left or has ended for good; `RoostClient.channel` then creates a new one.
    public var isOver: Bool { flag.isOver }

    /// Joins the channel. Returns once the hub has replied and row changes are live: every later commit arrives.
    ///
    /// Without a connection it keeps trying until its task is cancelled. Throws if the hub refuses the channel or its
    /// row changes for good.
    public func subscribe() async throws(RoostError) { try await core.callEngine(id, .subscribe) }

    /// Leaves the channel at once: the presence ends for others, and all sequences end.
    public func leave() async {
        do throws(RoostError) { try await core.callEngine(id, .leave) } catch {
            // The channel is left in any case.
        }
    }
}

extension Channel {
    /// Sends a message to the other members of the channel.
    ///
    /// While the channel is reconnecting, messages wait for it in the order of the calls, for at most
    /// `Configuration.sendTimeout`. After `.timedOut` or `.notConnected` the message may or may not have arrived.
    ///
    /// - Parameters:
    ///   - event: the name that others subscribe to.
    ///   - payload: must encode to a JSON object; other clients accept nothing else.
    public func send(event: String, payload: some Encodable & Sendable) async throws(RoostError) {
        let json = try encodeObject(payload)
        try await core.callEngine(id, .send(.broadcast(event: event, payload: json, isJSON: true)))
    }

    /// Sends raw bytes to the other members of the channel. Clients of protocol version 1 do not get them.
    public func send(event: String, bytes: Data) async throws(RoostError) {
        guard max(event.utf8.count, topic.utf8.count) <= 255 else {
            throw .encoding("The names of the event and the channel may have 255 bytes each.")
        }
        try await core.callEngine(id, .send(.broadcast(event: event, payload: Array(bytes), isJSON: false)))
    }

    /// Makes this client present in the channel with a payload, again after each reconnect, until `untrack`. Returns
    /// once the hub has accepted it, or at once without a connection.
    ///
    /// - Parameter payload: must encode to a JSON object.
    public func track(_ payload: some Encodable & Sendable) async throws(RoostError) {
        try await core.callEngine(id, .track(try encodeObject(payload)))
    }

    /// Ends this client's presence in the channel. Does not wait for the hub.
    public func untrack() { core.postCommand(.untrack(id)) }

    /// Reports that the user types, or has stopped. Call it at each keystroke; redundant calls are not sent. The hub
    /// ends typing after 3 s without a report, and when the user's message arrives.
    public func typing(_ isTyping: Bool) { core.postCommand(.typing(id, isTyping, Self.typingPayload(isTyping, nil))) }

    /// Reports that the user types, or has stopped, with the user's identity.
    ///
    /// - Parameters:
    ///   - isTyping: whether the user types. Call it at each keystroke; redundant calls are not sent.
    ///   - payload: the user's identity, an object; other RoostClients tell users apart by its `user_id`.
    public func typing(_ isTyping: Bool, payload: some Encodable & Sendable) throws(RoostError) {
        core.postCommand(.typing(id, isTyping, Self.typingPayload(isTyping, try encodeObject(payload))))
    }

    private static func typingPayload(_ isTyping: Bool, _ object: [UInt8]?) -> [UInt8] {
        let head = Array("{\"typing\":\(isTyping)".utf8)
        guard let object, object.count > 2 else { return head + [UInt8(ascii: "}")] }
        return head + [UInt8(ascii: ",")] + object.dropFirst()
    }

    private func encodeObject(_ payload: some Encodable) throws(RoostError) -> [UInt8] {
        let bytes: [UInt8]
        do { bytes = Array(try core.configuration.encoder.encode(payload)) } catch {
            throw .encoding(String(describing: error))
        }
        guard bytes.first == UInt8(ascii: "{") else { throw .encoding("It must be a JSON object.") }
        return bytes
    }
}

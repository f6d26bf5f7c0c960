public import Foundation

/// A channel: row changes, broadcasts, presence and typing under one name.
///
/// It stays joined while somebody holds it or one of its sequences, over all losses of the connection, until `leave()`.
public final class Channel: Sendable {
    /// The whole name, with `realtime:`.
    public let topic: String
    let id: ChannelID
    let core: ClientCore
    private let flag = ChannelFlag()

    init(_ topic: String, _ configuration: ChannelConfiguration, _ core: ClientCore) {
        self.topic = topic
        self.core = core
        id = core.nextID()
        core.post(.open(id, topic: topic, configuration, flag))
    }

    deinit { core.post(.release(id)) }

    /// It was left, or ended for good; `RoostClient.channel` makes a new one.
    public var isOver: Bool { flag.isOver }

    /// Joins. Returns when the hub has answered and row changes are live: every commit from then on arrives.
    ///
    /// Goes on trying while there is no connection, until its task is cancelled. Throws where the hub refuses the
    /// channel or its row changes for good.
    public func subscribe() async throws(RoostError) { try await core.call(id, .subscribe) }

    /// Leaves at once: the others see the presence go. All sequences end.
    public func leave() async {
        do throws(RoostError) { try await core.call(id, .leave) } catch {
            // Whatever it says, the channel is left.
        }
    }
}

extension Channel {
    /// Sends a message to the others of the channel.
    ///
    /// While the channel is on its way back the message waits for it, up to `Configuration.sendTimeout`; in the order
    /// of the calls. An error `.timedOut` or `.notConnected` after it was sent leaves open whether it arrived.
    ///
    /// - Parameters:
    ///   - event: what the others listen to.
    ///   - payload: encodes to a JSON object; other clients take nothing else.
    public func send(event: String, payload: some Encodable & Sendable) async throws(RoostError) {
        let json = try encode(payload)
        try await core.call(id, .send(.broadcast(event: event, payload: json, isJSON: true)))
    }

    /// Sends raw bytes, which clients of protocol version 1 do not get.
    public func send(event: String, bytes: Data) async throws(RoostError) {
        guard max(event.utf8.count, topic.utf8.count) <= 255 else {
            throw .encoding("The names of the event and the channel may have 255 bytes each.")
        }
        try await core.call(id, .send(.broadcast(event: event, payload: Array(bytes), isJSON: false)))
    }

    /// Is present in the channel with this payload, again after each reconnect, until `untrack`. Returns when the hub
    /// has taken it; without a connection at once.
    ///
    /// - Parameter payload: encodes to a JSON object.
    public func track(_ payload: some Encodable & Sendable) async throws(RoostError) {
        try await core.call(id, .track(try encode(payload)))
    }

    /// Is not present any more, at once.
    public func untrack() { core.post(.untrack(id)) }

    /// Says that the user types, or has stopped. Call it at each keystroke: what the hub does not need is not sent. Who
    /// stops without saying so is taken off by the hub after 3 s, and when the user's message arrives.
    public func typing(_ isTyping: Bool) { core.post(.typing(id, isTyping, Self.typing(isTyping, nil))) }

    /// Says that the user types, or has stopped, and who that is.
    ///
    /// - Parameters:
    ///   - isTyping: call it at each keystroke: what the hub does not need is not sent.
    ///   - payload: who types, as an object; `user_id` in it is what other RoostClients tell typists by.
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

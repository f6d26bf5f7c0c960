public import Foundation
import Wire

/// A frame of a channel as it came: what `roost tail` prints, and a way to events that this library does not know.
public struct ChannelMessage: Sendable, Equatable {
    /// As the protocol names it: `broadcast`, `postgres_changes`, `presence_diff`, `phx_reply`, …
    public let event: String
    /// The text of a JSON object.
    public let payload: Data
    /// So many frames were dropped before this one, because the consumer was too slow for the buffer.
    public let missedBefore: Int

    /// Raw bytes, which have no text, are told by their name and number.
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

import Wire

/// What a client says when its user types: a broadcast of the event `typing` whose payload is an object with a boolean
/// `typing`. The rest of the payload is the app's.
package struct TypingSign: Sendable {
    static let event = "typing"

    /// The message, with the place in it where the boolean stands.
    private let message: Broadcast
    private let range: Range<Int>
    /// The client's payload, a JSON object.
    private let payloadRange: Range<Int>
    let isTyping: Bool

    /// Nil for any other message.
    init?(_ message: Broadcast) {
        guard let payload = message.payload(ofEvent: Self.event), let value = payload["typing"],
            let isTyping = value.bool
        else { return nil }
        self.message = message
        self.isTyping = isTyping
        range = value.bytes.startIndex..<value.bytes.endIndex
        payloadRange = payload.bytes.startIndex..<payload.bytes.endIndex
    }

    /// The same sign as it would be if the user typed, or did not.
    func message(isTyping: Bool) -> Broadcast {
        guard isTyping != self.isTyping else { return message }
        switch message {
        case .text(let bytes): return .text(replacing(bytes[...], isTyping))
        case .user(let user):
            return .user(
                UserBroadcast(
                    event: user.event, encoding: user.encoding, payload: replacing(user.payload, isTyping)[...],
                    metadata: user.metadata))
        }
    }

    /// The client's payload of the sign as it would be if the user typed.
    var typingPayload: [UInt8] {
        switch message {
        case .text(let bytes): part(of: bytes[...])
        case .user(let user): part(of: user.payload)
        }
    }

    private func part(of bytes: ArraySlice<UInt8>) -> [UInt8] {
        guard !isTyping else { return Array(bytes[payloadRange]) }
        return Array(bytes[payloadRange.lowerBound..<range.lowerBound]) + "true".utf8
            + bytes[range.upperBound..<payloadRange.upperBound]
    }

    private func replacing(_ bytes: ArraySlice<UInt8>, _ isTyping: Bool) -> [UInt8] {
        Array(bytes[..<range.lowerBound]) + (isTyping ? "true" : "false").utf8 + bytes[range.upperBound...]
    }
}

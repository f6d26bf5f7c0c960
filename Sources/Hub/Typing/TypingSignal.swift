import Wire

/// A client's message that its user is typing: a broadcast of the event `typing` whose payload is an object with a
/// boolean `typing`, and otherwise only says who types and where. An app that says more, such as the text being typed,
/// uses an event of its own by that name, which is passed on unchanged.
package struct TypingSignal: Sendable {
    static let event = "typing"

    /// The message, in which `range` locates the boolean.
    package let message: BroadcastMessage
    private let range: Range<Int>
    /// The range of the client's payload, a JSON object.
    private let payloadRange: Range<Int>
    let isTyping: Bool

    /// Nil for any other message.
    package init?(_ message: BroadcastMessage) {
        guard let payload = message.payload(ofEvent: Self.event), let value = payload["typing"],
            let isTyping = value.bool, Self.isOurs(payload)
        else { return nil }
        self.message = message
        self.isTyping = isTyping
        range = value.bytes.startIndex..<value.bytes.endIndex
        payloadRange = payload.bytes.startIndex..<payload.bytes.endIndex
    }

    private static func isOurs(_ payload: JSON) -> Bool {
        var flags = 0
        return payload.hasOnlyMembers { member in
            guard member.isNamed(event) else { return namesSomeone(member) }
            flags += 1
            return flags == 1
        }
    }

    /// The last word of a member's name (`user_id`, `displayName`) tells its meaning; a person may be an object of such
    /// members.
    private static func namesSomeone(_ member: JSON.Member) -> Bool {
        guard naming.contains(lastWord(of: member.rawKey)) else { return false }
        switch member.value.kind {
        case .string, .number, .bool, .null: return true
        case .array: return false
        case .object: return member.value.hasOnlyMembers(where: namesSomeone)
        }
    }

    private static let naming: Set<String> = [
        "id", "uid", "uuid", "user", "name", "username", "nickname", "nick", "handle", "person", "member", "sender",
        "author", "profile", "email", "initials", "avatar", "picture", "photo", "image", "icon", "url", "color",
        "colour", "role", "device", "client", "session", "platform", "topic", "room", "channel", "chat", "conversation",
        "thread", "group", "team", "type", "event", "at", "time", "timestamp", "ts", "t",
    ]

    private static func lastWord(of key: ArraySlice<UInt8>) -> String {
        var start = key.endIndex
        while start > key.startIndex {
            switch key[start - 1] {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"): start -= 1
            // The first letter of a word inside a name, or a letter of an abbreviation (`userID`).
            case UInt8(ascii: "A")...UInt8(ascii: "Z"):
                start -= 1
                let word = lowercased(key[start...])
                if naming.contains(word) { return word }
            default: return lowercased(key[start...])
            }
        }
        return lowercased(key)
    }

    private static func lowercased(_ letters: ArraySlice<UInt8>) -> String {
        String(unsafeUninitializedCapacity: letters.count) { out in
            for (place, letter) in letters.enumerated() {
                out[place] = UInt8(ascii: "A")...UInt8(ascii: "Z") ~= letter ? letter | 0x20 : letter
            }
            return letters.count
        }
    }

    /// Whether another signal says the same of its user, apart from whether the user is typing.
    func says(theSameAs other: TypingSignal) -> Bool { typingPayload == other.typingPayload }

    /// Returns the message as it would be if the user were typing, or were not.
    func message(isTyping: Bool) -> BroadcastMessage {
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

    /// The client's payload as it would be if the user were typing.
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

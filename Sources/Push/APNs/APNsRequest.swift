import Signatures
import Wire

extension Push {
    /// The request's headers (Apple, "Sending notification requests to APNs").
    func headers(authorizedBy jwt: String) -> RequestHeaders {
        var out = RequestHeaders()
        func add(_ name: StaticString, _ value: String) { out.add(name, value) }
        switch target {
        case .device(let destination):
            add(":path", "/3/device/" + destination.token.text)
            add("apns-topic", destination.bundle.text + type.topicSuffix)
            add("apns-id", id.text)
        case .channel(let channel, _, let bundle):
            add(":path", "/4/broadcasts/apps/" + bundle.text)
            add("apns-channel-id", channel.text)
            add("apns-request-id", id.text)
        }
        add("authorization", "bearer " + jwt)
        add("apns-push-type", type.rawValue)
        add("apns-expiration", String(expiration))
        add("apns-priority", String(priority))
        if let collapseID { add("apns-collapse-id", collapseID) }
        return out
    }
}

/// The value of `apns-collapse-id`: at most 64 bytes (Apple, "Sending notification requests to APNs").
package enum CollapseID {
    static let limit = 64

    /// Returns `text` itself if it fits and is valid in a header, otherwise its SHA-256 in hexadecimal: 64 characters, the same for the
    /// same text.
    package static func fitting(_ text: String) -> String {
        let bytes = Array(text.utf8)
        if (1...limit).contains(bytes.count), bytes.allSatisfy({ (0x21...0x7E).contains($0) }) { return text }
        return Hexadecimal.text(HashFunction.sha256.hash(bytes))
    }
}

extension Push {
    /// The outcome of a notification that APNs would certainly refuse, with APNs' own reason; nil if it can be sent.
    var outcomeUnsent: PushOutcome? {
        if payload.isEmpty { return .refused(status: 400, reason: "PayloadEmpty") }
        if payload.count > target.payloadLimit { return .tooLarge(bytes: payload.count, limit: target.payloadLimit) }
        if let collapseID, collapseID.utf8.count > CollapseID.limit || !RequestHeaders.fit(collapseID) {
            return .refused(status: 400, reason: "BadCollapseId")
        }
        switch target {
        case .device(let destination):
            return RequestHeaders.fit(destination.bundle.text) ? nil : .refused(status: 400, reason: "BadTopic")
        case .channel(let id, _, let bundle):
            guard RequestHeaders.fit(bundle.text), !bundle.utf8.contains(UInt8(ascii: "/")) else {
                return .refused(status: 400, reason: "BadTopic")
            }
            return RequestHeaders.fit(id.text) ? nil : .refused(status: 400, reason: "BadChannelId")
        }
    }
}

extension Push.Target {
    /// The largest JSON that APNs accepts, in bytes.
    package var payloadLimit: Int {
        switch self {
        case .device: PayloadLimit.device
        case .channel: PayloadLimit.channel
        }
    }
}

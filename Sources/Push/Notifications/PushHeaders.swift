import Signatures
import Wire

extension Push {
    /// The request's headers as `roost_apns_post` takes them: names and values, each with a NUL behind it.
    func headers(authorizedBy token: ProviderToken) -> [UInt8] {
        var out: [UInt8] = []
        out.reserveCapacity(640)
        func add(_ name: StaticString, _ value: String) {
            name.withUTF8Buffer { out.append(contentsOf: $0) }
            out.append(0)
            out.append(contentsOf: value.utf8)
            out.append(0)
        }
        switch target {
        case .device(let destination):
            add(":path", "/3/device/" + destination.token.hex)
            add("apns-topic", destination.bundle.text + kind.topicSuffix)
            add("apns-id", id.text)
        case .channel(let channel, _, let bundle):
            add(":path", "/4/broadcasts/apps/" + bundle.text)
            add("apns-channel-id", channel.text)
            add("apns-request-id", id.text)
        }
        add("authorization", "bearer " + token.jwt)
        add("apns-push-type", kind.rawValue)
        add("apns-expiration", String(expiration))
        add("apns-priority", String(priority))
        if let collapseID { add("apns-collapse-id", collapseID) }
        return out
    }
}

/// The value of `apns-collapse-id`: at most 64 bytes (Apple, "Sending notification requests to APNs").
package enum CollapseID {
    static let limit = 64

    /// `text` itself where it fits and can stand in a header, otherwise its SHA-256 in hexadecimal: 64 characters, the
    /// same for the same text.
    package static func fitting(_ text: String) -> String {
        let bytes = Array(text.utf8)
        if (1...limit).contains(bytes.count), bytes.allSatisfy({ (0x21...0x7E).contains($0) }) { return text }
        return Hexadecimal.text(HashFunction.sha256.hash(bytes))
    }
}

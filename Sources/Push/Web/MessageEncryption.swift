package import Hub
import Signatures
package import Wire

/// Encrypts messages to browsers (RFC 8291).
package enum MessageEncryption {
    /// The most bytes of a message: a push service accepts 4,096 at least; salt, record size, the hub's key, delimiter and tag take the
    /// others (section 4).
    package static let longestText = 4096 - ContentCoding.headerLength - P256.pointLength - 1 - AES128GCM.tagLength

    /// - Parameters:
    ///   - scalar: the private key of a pair for this message alone.
    ///   - salt: 16 random bytes.
    /// - Returns: the body of the request; nil if the text is too long, or `scalar` is not a private key.
    static func encrypt(
        _ text: [UInt8], for browser: WebPushKeys, scalar: [UInt8], salt: [UInt8]
    ) -> [UInt8]? {
        guard text.count <= longestText, let own = P256.exchange(scalar: scalar, with: browser.publicKey) else {
            return nil
        }
        // Section 3.4: both public keys enter the derivation, so neither can be exchanged.
        let secret = DerivedKeys(from: own.secret, salt: browser.secret)
            .key(for: purpose + browser.publicKey + own.point, length: 32)
        return ContentCoding.encode(
            [ContentCoding.Record(bytes: text)], secret: secret, salt: salt, recordSize: 4096, keyID: own.point)
    }

    /// Encrypts with a key pair and a salt for this message alone. Returns nil if the text is too long.
    package static func encrypt(
        _ text: [UInt8], for browser: WebPushKeys, using random: inout some RandomNumberGenerator
    ) -> [UInt8]? {
        encrypt(text, for: browser, scalar: P256.scalar(using: &random), salt: random.bytes(ContentCoding.saltLength))
    }

    private static let purpose = Array("WebPush: info\0".utf8)
}

extension WebPushKeys {
    /// - Parameter json: the member `keys` of a subscription, as returned by `PushSubscription.toJSON()`. Nil if its `p256dh` is not a
    ///   point of the curve, or its `auth` does not have 16 bytes.
    package init?(subscription json: JSON?) {
        func bytes(_ name: String) -> [UInt8]? {
            guard let text = json?[name]?.string, text.utf8.count <= 100 else { return nil }
            return Base64URL.decode(text.utf8)
        }
        guard let point = bytes("p256dh"), let secret = bytes("auth"), P256.isPoint(point) else { return nil }
        self.init(publicKey: point, secret: secret)
    }
}

extension RandomNumberGenerator {
    /// - Parameter count: a multiple of 8.
    fileprivate mutating func bytes(_ count: Int) -> [UInt8] {
        (0..<count / 8).flatMap { _ in withUnsafeBytes(of: next()) { Array($0) } }
    }
}

extension P256 {
    /// Returns a random private key. One number of 2³² is invalid, and is drawn again.
    static func scalar(using random: inout some RandomNumberGenerator) -> [UInt8] {
        while true {
            let scalar = random.bytes(scalarLength)
            // The order of the group begins with 32 ones; a number that begins otherwise and is not zero is below it.
            if scalar.prefix(4).contains(where: { $0 != 0xFF }), scalar.contains(where: { $0 != 0 }) { return scalar }
        }
    }
}

package import Wire

/// The destination of a notification: a token with the environment and app it belongs to.
package struct PushDestination: Hashable, Sendable {
    package let token: PushToken
    package let environment: PushEnvironment
    /// The app's bundle ID; the topic's suffix follows from the kind of the notification.
    package let bundle: Name

    /// - Parameter environment: means something for APNs alone.
    package init(token: PushToken, environment: PushEnvironment = .production, bundle: Name) {
        self.token = token
        self.environment = environment
        self.bundle = bundle
    }

    package var kind: PushKind { token.kind }

    /// Returns the same token in another environment.
    package func moved(to environment: PushEnvironment) -> PushDestination {
        PushDestination(token: token, environment: environment, bundle: bundle)
    }
}

/// The Apple service that a token belongs to. A token of one is a bad token at the other.
package enum PushEnvironment: String, Sendable, CaseIterable {
    /// Apps installed from Xcode.
    case sandbox
    /// Apps from the App Store or TestFlight.
    case production

    package var other: PushEnvironment {
        switch self {
        case .sandbox: .production
        case .production: .sandbox
        }
    }

    /// The environment for use in a sentence: "in the sandbox".
    package var phrase: String {
        switch self {
        case .sandbox: "the sandbox"
        case .production: "production"
        }
    }
}

/// The service that a device is reached by.
package enum PushKind: String, Sendable, CaseIterable {
    /// Apple Push Notification service: iPhones, iPads, Macs.
    case apns
    /// Firebase Cloud Messaging: Android.
    case fcm
    /// Web Push (RFC 8030): browsers, each by the service of its maker.
    case web
}

/// A service's identifier of a device, or of an activity on it. With a token and the operator's key anyone can notify the
/// device, so a token is never printed whole.
package struct PushToken: Hashable, Sendable {
    package let kind: PushKind
    /// As the service wants it: lower-case hexadecimal digits for APNs, the registration token for FCM, the endpoint of a browser's
    /// subscription.
    package let text: String

    /// In bytes. Neither Apple nor Google names a length; indexes of Postgres take no more with what else is in them.
    package static let longest = 1024
    /// Shorter ones are none.
    private static let shortest = 16

    /// Nil for what cannot be a token of the kind: for APNs an even number of hexadecimal digits, for FCM letters, digits and `:_-.`, for
    /// a browser an `https` URL in visible ASCII.
    package init?(_ text: String, of kind: PushKind = .apns) {
        let bytes = text.utf8
        guard (Self.shortest...Self.longest).contains(bytes.count) else { return nil }
        self.kind = kind
        switch kind {
        case .apns:
            guard bytes.count.isMultiple(of: 2), bytes.allSatisfy({ Character(UnicodeScalar($0)).isHexDigit }) else {
                return nil
            }
            self.text = text.lowercased()
        case .fcm:
            guard bytes.allSatisfy(Self.isOfRegistrationToken) else { return nil }
            self.text = text
        case .web:
            guard text.hasPrefix("https://"), bytes.allSatisfy({ (0x21...0x7E).contains($0) }) else { return nil }
            self.text = text
        }
    }

    private static func isOfRegistrationToken(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
        default: ":_-.".utf8.contains(byte)
        }
    }

    /// Enough of it to tell tokens apart, and too little to use: of an endpoint a piece of its end, as all begin alike.
    package var prefix: String { kind == .web ? String(text.suffix(8)) : String(text.prefix(8)) }
}

/// The keys of a browser's subscription, by which what it is sent is encrypted (RFC 8291).
package struct WebPushKeys: Hashable, Sendable {
    /// The browser's public key: an uncompressed point of P-256, 65 bytes.
    package let publicKey: [UInt8]
    /// The shared secret: 16 bytes.
    package let secret: [UInt8]

    /// Nil for keys of other lengths.
    package init?(publicKey: [UInt8], secret: [UInt8]) {
        guard publicKey.count == 65, publicKey[0] == 4, secret.count == 16 else { return nil }
        self.publicKey = publicKey
        self.secret = secret
    }
}

extension PushToken: CustomStringConvertible {
    package var description: String { prefix + "…" }
}

/// A phone that alerts, or starts of Live Activities, may be sent to.
package struct DeviceRegistration: Sendable, Equatable {
    package enum Kind: Sendable, Equatable, Hashable {
        case alert
        /// A push-to-start token (iOS 17.2): one for each type of `ActivityAttributes`.
        case start(attributesType: String)
    }

    /// The claim `sub`.
    package let user: Name
    package let destination: PushDestination
    package let kind: Kind
    /// Milliseconds since 1970, by the database's clock.
    package let registeredAt: Int64
    /// The keys of a browser's subscription; nil for phones.
    package let keys: WebPushKeys?

    package init(
        user: Name, destination: PushDestination, kind: Kind, registeredAt: Int64, keys: WebPushKeys? = nil
    ) {
        self.user = user
        self.destination = destination
        self.kind = kind
        self.registeredAt = registeredAt
        self.keys = keys
    }
}

package import Wire

/// The destination of a notification: a token with the environment and app it belongs to.
package struct PushDestination: Hashable, Sendable {
    package let token: PushToken
    package let environment: PushEnvironment
    /// The app's bundle ID; the topic's suffix follows from the kind of the notification.
    package let bundle: Name

    package init(token: PushToken, environment: PushEnvironment, bundle: Name) {
        self.token = token
        self.environment = environment
        self.bundle = bundle
    }

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

/// Apple's identifier of a phone, or of an activity on it. With a token and the operator's key anyone can notify the
/// phone, so it is never printed whole.
package struct PushToken: Hashable, Sendable {
    /// Lower-case hexadecimal digits, as in the path of a request to APNs.
    package let hex: String

    /// Apple advises against relying on a length; this only excludes what cannot be a token.
    private static let lengths = 16...1024

    /// Nil unless the text is an even number of hexadecimal digits.
    package init?(_ text: String) {
        let digits = text.utf8
        guard Self.lengths.contains(digits.count), digits.count.isMultiple(of: 2),
            digits.allSatisfy({ Character(UnicodeScalar($0)).isHexDigit })
        else { return nil }
        hex = text.lowercased()
    }

    /// Enough of the token to tell tokens apart, and too little to use.
    package var prefix: String { String(hex.prefix(8)) }
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

    package init(user: Name, destination: PushDestination, kind: Kind, registeredAt: Int64) {
        self.user = user
        self.destination = destination
        self.kind = kind
        self.registeredAt = registeredAt
    }
}

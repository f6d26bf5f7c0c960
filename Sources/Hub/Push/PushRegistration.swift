package import Wire

/// Where a notification goes: a token, and what it is a token of.
package struct PushDestination: Hashable, Sendable {
    package let token: PushToken
    package let environment: PushEnvironment
    /// The app's bundle id; the topic's suffix follows from the kind of the notification.
    package let bundle: Name

    package init(token: PushToken, environment: PushEnvironment, bundle: Name) {
        self.token = token
        self.environment = environment
        self.bundle = bundle
    }

    /// The same token in another environment.
    package func moved(to environment: PushEnvironment) -> PushDestination {
        PushDestination(token: token, environment: environment, bundle: bundle)
    }
}

/// Which of Apple's two services a token belongs to. A token of one is a bad token at the other.
package enum PushEnvironment: String, Sendable, CaseIterable {
    /// Apps that were installed from Xcode.
    case sandbox
    /// The App Store's and TestFlight's.
    case production

    package var other: PushEnvironment {
        switch self {
        case .sandbox: .production
        case .production: .sandbox
        }
    }

    /// The environment in a sentence: "in the sandbox".
    package var phrase: String {
        switch self {
        case .sandbox: "the sandbox"
        case .production: "production"
        }
    }
}

/// What Apple names a phone, or an activity on it, by. Whoever has one and the operator's key can notify it, so it is
/// never printed whole.
package struct PushToken: Hashable, Sendable {
    /// Lower-case hexadecimal digits, as in the path of a request to APNs.
    package let hex: String

    /// Apple says not to count on a length; this only keeps out what cannot be one.
    private static let lengths = 16...1024

    /// Nil for what is not an even number of hexadecimal digits.
    package init?(_ text: String) {
        let digits = text.utf8
        guard Self.lengths.contains(digits.count), digits.count.isMultiple(of: 2),
            digits.allSatisfy({ Character(UnicodeScalar($0)).isHexDigit })
        else { return nil }
        hex = text.lowercased()
    }

    /// Enough of it to tell tokens apart, and too little to use.
    package var prefix: String { String(hex.prefix(8)) }
}

extension PushToken: CustomStringConvertible {
    package var description: String { prefix + "…" }
}

/// A phone that alerts, or the starts of Live Activities, may be sent to.
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

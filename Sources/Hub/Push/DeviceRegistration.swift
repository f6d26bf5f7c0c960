/// A phone that alerts, or the starts of Live Activities, may be sent to.
package struct DeviceRegistration: Sendable, Equatable {
    package enum Kind: Sendable, Equatable, Hashable {
        case alert
        /// A push-to-start token (iOS 17.2): one for each type of `ActivityAttributes`.
        case start(attributesType: String)
    }

    /// The claim `sub`.
    package let user: String
    package let destination: PushDestination
    package let kind: Kind
    /// Milliseconds since 1970, by the database's clock.
    package let registeredAt: Int64

    package init(user: String, destination: PushDestination, kind: Kind, registeredAt: Int64) {
        self.user = user
        self.destination = destination
        self.kind = kind
        self.registeredAt = registeredAt
    }
}

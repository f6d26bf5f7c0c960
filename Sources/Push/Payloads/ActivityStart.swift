package import Wire

/// What starts a Live Activity by push (iOS 17.2): whatever the app's `ActivityAttributes` are made of.
package struct ActivityStart: Sendable {
    /// How the phone gets the updates of what was started (iOS 18).
    package enum Input: Sendable, Equatable {
        /// The app is woken with a new token, and registers it.
        case token
        /// Broadcasts to a channel, by its id.
        case channel(String)
    }

    /// The name of the struct that conforms to `ActivityAttributes`.
    package let attributesType: String
    package let attributes: JSON
    package let input: Input?

    package init(attributesType: String, attributes: JSON, input: Input? = nil) {
        self.attributesType = attributesType
        self.attributes = attributes
        self.input = input
    }
}

/// Where a notification goes: a token, and what it is a token of.
package struct PushDestination: Hashable, Sendable {
    package let token: PushToken
    package let environment: PushEnvironment
    /// The app's bundle id; the topic's suffix follows from the kind of the notification.
    package let bundle: String

    package init(token: PushToken, environment: PushEnvironment, bundle: String) {
        self.token = token
        self.environment = environment
        self.bundle = bundle
    }
}

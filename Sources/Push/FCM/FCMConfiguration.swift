/// The configuration of Firebase Cloud Messaging.
package struct FCMConfiguration: Sendable {
    package var account: ServiceAccount
    /// Another server, such as a stand-in or a proxy: `https://HOST:PORT`. Access tokens come from the account's `token_uri`.
    package var url: String?
    package var limits = PushLimits()

    package init(account: ServiceAccount) {
        self.account = account
        // Google's front ends allow 100 requests at a time on a connection.
        limits.connections = 4
    }
}

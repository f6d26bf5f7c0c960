/// One member's presence as it is written down, so that a hub that starts again knows who was there.
package struct PresenceRecord: Sendable, Equatable {
    package let channel: ChannelKey
    /// Unique among all that is tracked, and new with every track: clients know a meta by it.
    package let ref: String
    package let key: String
    /// The client gave no key, so the hub made this one.
    package let hasMadeKey: Bool
    /// The claim `sub`.
    package let user: String?
    /// A JSON object.
    package let payload: [UInt8]
    package let appState: AppState?

    package init(
        channel: ChannelKey, ref: String, key: String, hasMadeKey: Bool, user: String?, payload: [UInt8],
        appState: AppState?
    ) {
        self.channel = channel
        self.ref = ref
        self.key = key
        self.hasMadeKey = hasMadeKey
        self.user = user
        self.payload = payload
        self.appState = appState
    }
}

package import Wire

/// Phones of a user that are judged separately (`alerts.devices`) and have a message: they are not sent its alert.
package struct SparedPhones: Sendable, Equatable {
    package let message: Name
    package let user: Name
    /// The claim `session_id` that they were registered with; nil for phones registered without one.
    package let session: Name?
    /// The reason why they are spared.
    package let reason: AlertReason

    package init(message: Name, user: Name, session: Name?, reason: AlertReason) {
        self.message = message
        self.user = user
        self.session = session
        self.reason = reason
    }
}

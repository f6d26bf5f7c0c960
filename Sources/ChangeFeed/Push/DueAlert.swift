package import Hub
import Postgres

/// An alert that this hub has taken: nobody else sends it, and nobody ever again.
package struct DueAlert: Sendable, Equatable {
    package let message: String
    package let user: String
    package let conversation: String?
    /// As the draft had them.
    package let variables: [UInt8]
    /// In milliseconds since 1970.
    package let expiresAt: Int64
    /// The user's phones that this message was not sent to yet; one at least.
    package let devices: [DeviceRegistration]
}

/// What `PushStore.takeDue` took out of the queue.
package struct TakenAlerts: Sendable, Equatable {
    package internal(set) var alerts: [DueAlert] = []
    /// Came too late to be sent.
    package internal(set) var expired = 0
    /// The user is online at another hub by now.
    package internal(set) var dropped = 0
    /// No phone to send it to.
    package internal(set) var withoutDevice = 0

    /// How many rows of the queue that were: as many as asked for means that there may be more.
    package var count: Int { alerts.count + expired + dropped + withoutDevice }
}

/// How the sending of an alert to one phone ended.
package struct AlertSettlement: Sendable, Equatable {
    package let message: String
    package let destination: PushDestination
    /// One word for whoever looks into the table.
    package let outcome: String

    package init(message: String, destination: PushDestination, outcome: String) {
        self.message = message
        self.destination = destination
        self.outcome = outcome
    }
}

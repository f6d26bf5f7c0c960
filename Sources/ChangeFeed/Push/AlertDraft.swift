import Postgres

/// An alert to one user, with what the hub knows of the user's connection.
package struct AlertDraft: Sendable, Equatable {
    /// Whether the alert is to be sent, and when.
    package enum State: Sendable, Equatable {
        /// To be sent at once.
        case due
        /// The user is in a grace window of this hub until then, in milliseconds since 1970.
        case held(until: Int64)
        /// The user is online at another hub, which reads the same change and knows better.
        case elsewhere
        /// The user is live here: nobody alerts.
        case dropped
    }

    /// The same at every hub, for the same message.
    package let message: String
    package let user: String
    package let conversation: String?
    /// For the templates, as a JSON object.
    package let variables: [UInt8]
    /// In milliseconds since 1970; what is not sent by then is not sent.
    package let expiresAt: Int64
    package let state: State
    /// `RowChange.id` of the message: a user's alerts are sent in this order.
    package let place: Int64

    package init(
        message: String, user: String, conversation: String?, variables: [UInt8], expiresAt: Int64, state: State,
        place: Int64 = 0
    ) {
        self.message = message
        self.user = user
        self.conversation = conversation
        self.variables = variables
        self.expiresAt = expiresAt
        self.state = state
        self.place = place
    }

    /// What Postgres' texts and indices take; everything else that comes from a database is.
    var isStorable: Bool {
        let keys = [message, user, conversation ?? ""]
        return keys.allSatisfy { !$0.utf8.contains(0) && $0.utf8.count <= 1000 } && !variables.contains(0)
    }
}

package import Hub
package import Push

/// What is pushed to whom, as the operator has configured it.
package struct PushRules: Sendable {
    /// The hub's name in the database.
    package var node: String
    /// Of an app whose registration names none.
    package var bundle: String
    package var environment: PushEnvironment
    /// The tables whose new rows are messages, as `SCHEMA.TABLE`.
    package var tables: Set<String>
    /// Nil: nobody is told of messages.
    package var audience: String?
    /// Nil: an activity knows nothing of its conversation before its first message.
    package var facts: String?
    package var alert: AlertTemplate
    package var preview: Preview
    /// How long an alert is worth delivering, in milliseconds.
    package var alertLife: Int64
    package var activity: ActivityRules
    /// The channel of a conversation.
    package var topic: TextTemplate
    /// For how long those whom the hub's last process served may take to come back, in milliseconds.
    package var restartWindow: Int64
    /// How long an answer to `facts` is believed, in milliseconds.
    package var refresh: Int64

    package init(
        node: String, bundle: String, environment: PushEnvironment, tables: Set<String>, audience: String?,
        facts: String?, alert: AlertTemplate, preview: Preview, alertLife: Int64, activity: ActivityRules,
        topic: TextTemplate, restartWindow: Int64, refresh: Int64
    ) {
        self.node = node
        self.bundle = bundle
        self.environment = environment
        self.tables = tables
        self.audience = audience
        self.facts = facts
        self.alert = alert
        self.preview = preview
        self.alertLife = alertLife
        self.activity = activity
        self.topic = topic
        self.restartWindow = restartWindow
        self.refresh = refresh
    }

    /// With what `next` says of texts and times. Whom it concerns, and who is asked, stays: a restart changes that.
    func reloaded(as next: PushRules) -> PushRules {
        var rules = self
        rules.alert = next.alert
        rules.preview = next.preview
        rules.alertLife = next.alertLife
        rules.activity = next.activity
        rules.refresh = next.refresh
        return rules
    }

    func isMessage(_ change: RowChange) -> Bool {
        change.operation == .insert && audience != nil && tables.contains("\(change.table.schema).\(change.table.name)")
    }
}

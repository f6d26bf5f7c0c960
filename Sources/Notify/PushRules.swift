package import Hub
import Matching
package import Push
package import Stores
package import Wire

/// What is pushed to whom, as the operator has configured it.
package struct PushRules: Sendable {
    /// The hub's name in the database.
    package var node: String
    /// The bundle id of an app whose registration names none.
    package var bundle: String
    /// The environment of a registration that names none.
    package var environment: PushEnvironment
    /// The tables whose new rows are messages, as `SCHEMA.TABLE`.
    package var tables: Set<String>
    /// The columns whose rows are pushed at the time that they say.
    package var timed: [TimedSource] = []
    /// The statement that says who is to hear of a message; nil where nobody is.
    package var audience: String?
    /// The statement that says what a conversation is for a user; nil where an activity knows nothing of its
    /// conversation before its first message.
    package var facts: String?
    /// Of alerts about tables that have no template of their own.
    package var alert: AlertTemplate
    /// Whom an alert is for, by what is known of the message's receipt.
    package var condition: AlertCondition = .unseen
    /// Whether what one device of a user's shows is pushed to the others.
    package var devices: AlertDevices = .together
    /// How long a proof of receipt is waited for, in milliseconds.
    package var proof: Int64 = 5000
    /// Where it is said up to where users have read; nil where nowhere.
    package var reading: ReadPositions?
    /// The statement that says what the icons of users show; nil where they follow alerts alone.
    package var badge: String?
    /// Between two pushes of a number to a user, in milliseconds.
    package var badgePause: Int64 = 10_000
    /// The templates of single tables, by `SCHEMA.TABLE`.
    package var templates: [Name: AlertTemplate] = [:]
    /// The statement that reads tokens of phones from the application's own table; nil where there is none.
    package var tokens: String?
    /// How the text of a message is cut.
    package var preview: Preview
    /// How alerts look on Android.
    package var android = AndroidStyle()
    /// How long an alert is worth delivering, in milliseconds.
    package var alertLife: Int64
    package var activity: ActivityRules
    /// The template of the name of a conversation's channel.
    package var topic: TextTemplate
    /// How long the phones that were connected to the hub's last process may take to come back, in milliseconds.
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

    /// These rules with the texts and times of `next`. Whom pushes concern, and which statements are asked, stays until
    /// a restart.
    func reloaded(as next: PushRules) -> PushRules {
        var rules = self
        rules.alert = next.alert
        rules.condition = next.condition
        rules.devices = next.devices
        rules.proof = next.proof
        rules.templates = next.templates
        rules.preview = next.preview
        rules.alertLife = next.alertLife
        rules.activity = next.activity
        rules.refresh = next.refresh
        rules.badgePause = next.badgePause
        rules.android = next.android
        return rules
    }

    /// Whether a change is a new message that somebody may be notified of, or a backend's notification.
    func isMessage(_ change: RowChange) -> Bool {
        change.isNotification || change.operation == .insert && isOfMessages(change.table)
    }

    /// Whether the new rows of a table are messages that somebody may be notified of.
    func isOfMessages(_ table: Table) -> Bool {
        audience != nil && tables.contains("\(table.schema).\(table.name)")
    }

    /// Whether a table has rows that are pushed at a time which they say.
    func isTimed(_ table: Table) -> Bool { timed.contains { $0.isOf(table.schema, table.name) } }
}

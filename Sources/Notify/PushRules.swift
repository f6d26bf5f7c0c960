package import Hub
import Matching
package import Push
package import Stores
package import Wire

/// The operator's configuration of pushes and their recipients.
package struct PushRules: Sendable {
    /// The hub's name in the database.
    package var node: String
    /// The bundle id of an app whose registration names none.
    package var bundle: String
    /// The environment of a registration that names none.
    package var environment: PushEnvironment
    /// The tables whose new rows are messages, as `SCHEMA.TABLE`.
    package var tables: Set<String>
    /// The columns with times at which their rows are pushed.
    package var timed: [TimedSource] = []
    /// The statement that returns the audience of a message; nil if there is none.
    package var audience: String?
    /// The statement that describes a conversation for a user; nil if an activity knows nothing of its conversation before its first
    /// message.
    package var facts: String?
    /// The template of alerts about tables without one of their own.
    package var alert: AlertTemplate
    /// The users that an alert is for, by the known receipt of the message.
    package var condition: AlertCondition = .unseen
    /// Whether a message shown by one of a user's devices is pushed to the others.
    package var devices: AlertDevices = .together
    /// The longest wait for a proof of receipt, in milliseconds.
    package var proof: Int64 = 5000
    /// The source of users' read positions; nil if there is none.
    package var reading: ReadPositions?
    /// The statement that returns the numbers on users' icons; nil if the icons follow alerts alone.
    package var badge: String?
    /// The pause between two pushes of a number to a user, in milliseconds.
    package var badgePause: Int64 = 10_000
    /// The templates of single tables, by `SCHEMA.TABLE`.
    package var templates: [Name: AlertTemplate] = [:]
    /// The statement that reads tokens of phones from the application's own table; nil if there is none.
    package var tokens: String?
    /// The limit of a message's text.
    package var preview: Preview
    /// The appearance of alerts on Android.
    package var android = AndroidStyle()
    /// The time for which an alert is worth delivering, in milliseconds.
    package var alertLife: Int64
    package var activity: ActivityRules
    /// The template of the name of a conversation's channel.
    package var topic: TextTemplate
    /// The time for the phones connected to the hub's last process to come back, in milliseconds.
    package var restartWindow: Int64
    /// The time for which an answer to `facts` is believed, in milliseconds.
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

    /// Returns these rules with the texts and times of `next`. The recipients of pushes, and the statements in use, stay until a
    /// restart.
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

    /// Whether a change is a new message with a possible audience, or a backend's notification.
    func isMessage(_ change: RowChange) -> Bool {
        change.isNotification || change.operation == .insert && isOfMessages(change.table)
    }

    /// Whether the new rows of a table are messages with a possible audience.
    func isOfMessages(_ table: Table) -> Bool {
        audience != nil && tables.contains("\(table.schema).\(table.name)")
    }

    /// Whether a table has rows that are pushed at a time they contain.
    func isTimed(_ table: Table) -> Bool { timed.contains { $0.isOf(table.schema, table.name) } }
}

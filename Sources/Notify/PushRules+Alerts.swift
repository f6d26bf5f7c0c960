package import Hub
import Matching
package import Push
import Stores
package import Wire

/// The content of alerts: by the template of the row's table, or as given by the backend that sends it.
extension PushRules {
    /// Returns the template of alerts about the rows of a table, `SCHEMA.TABLE`; the general one if the table is unknown.
    package func alert(for table: Name?) -> AlertTemplate { table.flatMap { templates[$0] } ?? alert }

    /// - Parameter variables: the alert's.
    func payload(of due: DueAlert, _ variables: TemplateVariables) -> AlertPayload {
        if let content = variables.notification {
            return payload(of: content, id: due.notificationID, badge: variables["badge"]?.int)
        }
        return alert(for: variables.table).payload(
            variables, badge: variables["badge"]?.int, conversation: due.conversation,
            message: variables["message_id"]?.string ?? variables["message_id"]?.description)
    }

    /// - Parameter badge: the user's, if the notification has none.
    package func payload(of content: NotificationContent, id: Name, badge: Int?) -> AlertPayload {
        let standard = alert.sound?.text(TemplateVariables())
        let sound = content.sound ?? standard ?? ""
        var payload = AlertPayload(
            title: content.title.map { .text($0) }, subtitle: content.subtitle.map { .text($0) },
            body: content.body.map { .text($0) }, badge: content.badge ?? badge, sound: sound.isEmpty ? nil : sound,
            threadID: content.conversation?.text, category: content.category, conversationID: content.conversation?.text
        )
        payload.interruptionLevel = content.interruptionLevel
        payload.relevanceScore = content.relevanceScore
        payload.notificationID = id.text
        if let data = content.data { payload.add(fieldsOf: JSON(trusted: data[...])) }
        return payload
    }
}

extension PushID {
    /// Makes the same id for a message and a phone every time: Apple's answers are found by it.
    package init(of message: Name, to destination: PushDestination) {
        self.init(named: message.text + " " + destination.token.text)
    }
}

extension DueAlert {
    /// Returns the tag of which a device shows only the newest alert.
    ///
    /// - Parameter collapseID: nil for the alert's own key.
    func tag(_ collapseID: String?) -> String { CollapseID.fitting(collapseID ?? message.text) }

    /// - Parameter collapseID: the id of which the device shows only the newest alert; nil for the alert's own key.
    func push(to device: DeviceRegistration, _ payload: [UInt8], collapseID: String?) -> Push {
        // FCM keeps four keys for a device that is away, and drops the messages of the others: keys of single messages would cost
        // messages.
        let isCollapsed = collapseID != nil || device.destination.kind == .apns
        return Push(
            id: PushID(of: message, to: device.destination), to: .device(device.destination), type: .alert,
            priority: 10, expiration: expiresAt / 1000, collapseID: isCollapsed ? tag(collapseID) : nil,
            payload: payload, registeredAt: device.registeredAt, keys: device.keys, deadline: expiresAt)
    }

    /// The id of the notification behind the alert.
    fileprivate var notificationID: Name {
        Name(Substring(message.utf8.dropFirst(UserNotification.keyPrefix.utf8.count)))
    }
}

/// The hub's own entries among an alert's variables; their names cannot occur in a template, or as a column, by accident.
extension TemplateVariables {
    private static let table = "roost.table"

    /// Stores the table of the alert's row, which selects the template on sending.
    mutating func note(table: Table) {
        guard table !== Table.notifications else { return }
        set(Self.table, "\(table.schema).\(table.name)")
    }

    fileprivate var table: Name? { self[Self.table]?.string.map { Name($0) } }

    /// The content given by a backend; nil if the alert is about a row.
    fileprivate var notification: NotificationContent? {
        guard let json = self[UserNotification.variable] else { return nil }
        do { return try NotificationContent(json) } catch { return nil }
    }

    fileprivate var condition: AlertCondition? {
        notification.map { $0.condition == .unreceived ? .unreceived : .unseen }
    }

    /// Whether the alert is sent to its users in any case, whether they are present or not.
    var isSentAlways: Bool { notification?.condition == .always }

    /// The id of which the phone shows only the newest alert; nil for the alert's own key.
    var collapseID: String? { notification?.collapseID }
}

extension MessageNotification {
    /// The condition of a backend's notification; nil if the alert is about a row.
    var condition: AlertCondition? { variables.condition }

    /// Whether the alert is sent to its users in any case, whether they are present or not.
    var isSentAlways: Bool { variables.isSentAlways }
}

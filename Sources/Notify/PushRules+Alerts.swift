package import Hub
import Matching
package import Push
import Stores
package import Wire

/// What an alert says: by the template of its row's table, or as the backend that wants it sent has it.
extension PushRules {
    /// The template of alerts about the rows of a table, `SCHEMA.TABLE`; of those of which the table is not known, the general one.
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

    /// - Parameter badge: the user's, where the notification has none.
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
    /// The same for a message and a phone whenever it is sent: Apple's answers are found by it.
    package init(of message: Name, to destination: PushDestination) {
        self.init(named: message.text + " " + destination.token.text)
    }
}

extension DueAlert {
    /// What a device shows only the newest of.
    ///
    /// - Parameter collapseID: nil if the alert's own key says that.
    func tag(_ collapseID: String?) -> String { CollapseID.fitting(collapseID ?? message.text) }

    /// - Parameter collapseID: nil if the alert's own key says of what the device shows only the newest.
    func push(to device: DeviceRegistration, _ payload: [UInt8], collapseID: String?) -> Push {
        // FCM keeps four keys of a device that is away, and forgets what the others are of: those of single messages would cost messages.
        let isCollapsed = collapseID != nil || device.destination.kind == .apns
        return Push(
            id: PushID(of: message, to: device.destination), to: .device(device.destination), type: .alert,
            priority: 10, expiration: expiresAt / 1000, collapseID: isCollapsed ? tag(collapseID) : nil,
            payload: payload, registeredAt: device.registeredAt, keys: device.keys, deadline: expiresAt)
    }

    /// The id of the notification that it is an alert of.
    fileprivate var notificationID: Name {
        Name(Substring(message.utf8.dropFirst(UserNotification.keyPrefix.utf8.count)))
    }
}

/// What the hub itself keeps among an alert's variables; their names are none that a template, or a column, has by accident.
extension TemplateVariables {
    private static let table = "roost.table"

    /// Notes the table of the alert's row, by which its template is found when it is sent.
    mutating func note(table: Table) {
        guard table !== Table.notifications else { return }
        set(Self.table, "\(table.schema).\(table.name)")
    }

    fileprivate var table: Name? { self[Self.table]?.string.map { Name($0) } }

    /// What a backend wants said; nil where the alert is about a row.
    fileprivate var notification: NotificationContent? {
        guard let json = self[UserNotification.variable] else { return nil }
        do { return try NotificationContent(json) } catch { return nil }
    }

    fileprivate var condition: AlertCondition? {
        notification.map { $0.condition == .unreceived ? .unreceived : .unseen }
    }

    /// It is sent to whomever it is for, be they there or not.
    var isSentAlways: Bool { notification?.condition == .always }

    /// What the phone shows only the newest of; nil where the alert's own key says that.
    var collapseID: String? { notification?.collapseID }
}

extension MessageNotification {
    /// Whom a backend's notification is for; nil where the alert is about a row.
    var condition: AlertCondition? { variables.condition }

    /// It is sent to whomever it is for, be they there or not.
    var isSentAlways: Bool { variables.isSentAlways }
}

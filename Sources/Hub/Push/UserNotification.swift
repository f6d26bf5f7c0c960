package import Wire

/// A backend's notification to users: the body of `POST /api/notify`, the output of `roost notify`, and the argument of
/// `roost.notify()` in SQL.
package struct UserNotification: Sendable, Equatable {
    /// The recipients of a notification.
    package enum Recipients: Sendable, Equatable {
        /// The users' claims `sub`, each once.
        case users([Name])
        /// The users that `alerts.audience` names for such a row.
        case audience(NotificationAudience)
    }

    /// The caller's idempotency key, or a generated one: a user gets one notification per ID, however often it is sent.
    package let id: Name
    package let recipients: Recipients
    package let content: NotificationContent

    /// The maximum number of users in one call.
    package static let mostUsers = 1000
    /// In bytes, as an index of Postgres accepts with its other columns.
    private static let longestName = 1000
    /// In bytes.
    private static let longestID = 200

    /// - Parameter makeID: makes the ID of a notification that has none.
    /// - Throws: a sentence for the author of the notification.
    package init(_ json: JSON, makeID: () -> Name) throws(NotificationProblem) {
        let body = NotificationBody(json)
        let id = try body.text("id", upTo: Self.longestID).map { Name($0) }
        recipients = try Self.parseRecipients(body)
        content = try NotificationContent(json)
        self.id = id ?? makeID()
    }

    private init(id: Name, recipients: Recipients, content: NotificationContent) {
        self.id = id
        self.recipients = recipients
        self.content = content
    }

    /// Returns the same notification for other users.
    package func sent(to users: [Name]) -> UserNotification {
        UserNotification(id: id, recipients: .users(users), content: content)
    }

    private static func parseRecipients(_ body: NotificationBody) throws(NotificationProblem) -> Recipients {
        let named = ["userId", "userIds", "audience"].filter { body.value($0) != nil }
        guard named.count == 1, let key = named.first, let value = body.value(key) else {
            throw NotificationProblem("Say to whom it goes by one of userId, userIds and audience.")
        }
        switch key {
        case "userId": return .users([try parseName(value, key)])
        case "audience": return .audience(try NotificationAudience(value))
        default:
            let elements = value.elements(upTo: mostUsers + 1)
            guard value.kind == .array, !elements.isEmpty else {
                throw NotificationProblem("userIds is not a list of users, or is empty.")
            }
            guard elements.count <= mostUsers else {
                throw NotificationProblem(
                    "userIds may name \(mostUsers) users at most; send the others by another call.")
            }
            var users: [Name] = []
            var seen: Set<Name> = []
            for element in elements {
                let user = try parseName(element, key)
                if seen.insert(user).inserted { users.append(user) }
            }
            return .users(users)
        }
    }

    private static func parseName(_ value: JSON, _ key: String) throws(NotificationProblem) -> Name {
        guard let text = value.string, (1...longestName).contains(text.utf8.count), !text.utf8.contains(0) else {
            throw NotificationProblem("A user in \(key) is not a text of 1 to \(longestName) bytes.")
        }
        return Name(text)
    }

    /// JSON that `init` accepts.
    package var json: [UInt8] {
        JSONWriter.object { out in
            out.writeMember("id", id.text)
            switch recipients {
            case .users(let users): out.writeMember("userIds", users.map(\.text))
            case .audience(let audience):
                out.object("audience") {
                    $0.writeMember("table", audience.table.text)
                    $0.writeMember("record", json: audience.record)
                }
            }
            content.writeMembers(into: &out)
        }
    }
}

/// A row, which need not exist, for which `alerts.audience` names the recipients.
package struct NotificationAudience: Sendable, Equatable {
    /// `SCHEMA.TABLE`.
    package let table: Name
    /// The row as a JSON object.
    package let record: [UInt8]

    fileprivate init(_ json: JSON) throws(NotificationProblem) {
        let table = json["table"]?.string ?? ""
        let parts = table.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 2, !parts.contains(""), table.utf8.count <= 200, !table.utf8.contains(0),
            let record = json["record"], record.kind == .object
        else {
            throw NotificationProblem(
                "audience is not an object with a table and a record, such as "
                    + #"{"table":"public.messages","record":{"conversation_id":"…"}}."#)
        }
        self.table = Name(table)
        self.record = Array(record.bytes)
    }
}

/// The content of a notification, independent of its recipients.
package struct NotificationContent: Sendable, Equatable {
    /// The condition under which the notification is sent to a user that may be online.
    package enum Condition: String, Sendable, CaseIterable {
        case always
        /// Only to users not proven to have an app on the screen.
        case unseen
        /// Only to users not proven to have a running app, on the screen or not.
        case unreceived
    }

    package let title: String?
    package let subtitle: String?
    package let body: String?
    /// Fields beside `aps`, as a JSON object.
    package let data: [UInt8]?
    package let conversation: Name?
    package let badge: Int?
    /// "" is silence; nil is the default sound of alerts.
    package let sound: String?
    package let category: String?
    package let interruptionLevel: InterruptionLevel?
    package let relevanceScore: Double?
    package let collapseID: String?
    package let condition: Condition

    /// Names beside `aps` that the hub itself sets.
    package static let ownFields = ["aps", "conversationId", "messageId", "notificationId"]
    /// In bytes. A title or a body may be longer than a push, which is truncated.
    private static let longestText = 16_384
    /// In bytes, for texts that are not truncated.
    private static let longestName = 1000

    /// - Throws: a sentence for the author of the notification.
    package init(_ json: JSON) throws(NotificationProblem) {
        let body = NotificationBody(json)
        title = try body.text("title", upTo: Self.longestText)
        subtitle = try body.text("subtitle", upTo: Self.longestText)
        self.body = try body.text("body", upTo: Self.longestText)
        guard title != nil || self.body != nil else {
            throw NotificationProblem("title or body is missing: a notification says something.")
        }
        data = try Self.parseData(body)
        conversation = try body.text("conversationId", upTo: Self.longestName).map { Name($0) }
        badge = try Self.parseBadge(body)
        sound = try body.text("sound", upTo: Self.longestName, mayBeEmpty: true)
        category = try body.text("category", upTo: Self.longestName)
        interruptionLevel = try body.word("interruptionLevel", of: InterruptionLevel.self)
        relevanceScore = try Self.parseScore(body)
        collapseID = try body.text("collapseId", upTo: Self.longestName)
        condition = try body.word("when", of: Condition.self) ?? .unseen
    }

    private static func parseData(_ body: NotificationBody) throws(NotificationProblem) -> [UInt8]? {
        guard let value = body.value("data") else { return nil }
        guard value.kind == .object else { throw NotificationProblem("data is not a JSON object.") }
        var taken: String?
        value.forEachMember { member in
            if let own = ownFields.first(where: { member.isNamed($0) }) { taken = own }
        }
        if let taken { throw NotificationProblem("data may not have the field \(taken), which the hub itself writes.") }
        return Array(value.bytes)
    }

    private static func parseBadge(_ body: NotificationBody) throws(NotificationProblem) -> Int? {
        guard let value = body.value("badge") else { return nil }
        guard let number = value.int, (0...999_999_999).contains(number) else {
            throw NotificationProblem("badge is not a whole number from 0 to 999999999.")
        }
        return number
    }

    private static func parseScore(_ body: NotificationBody) throws(NotificationProblem) -> Double? {
        guard let value = body.value("relevanceScore") else { return nil }
        guard let number = value.double, (0...1).contains(number) else {
            throw NotificationProblem("relevanceScore is not a number from 0 to 1.")
        }
        return number
    }

    fileprivate func writeMembers(into out: inout JSONWriter) {
        if let title { out.writeMember("title", title) }
        if let subtitle { out.writeMember("subtitle", subtitle) }
        if let body { out.writeMember("body", body) }
        if let data { out.writeMember("data", json: data) }
        if let conversation { out.writeMember("conversationId", conversation.text) }
        if let badge { out.writeMember("badge", badge) }
        if let sound { out.writeMember("sound", sound) }
        if let category { out.writeMember("category", category) }
        if let interruptionLevel { out.writeMember("interruptionLevel", interruptionLevel.rawValue) }
        if let relevanceScore { out.writeMember("relevanceScore", relevanceScore) }
        if let collapseID { out.writeMember("collapseId", collapseID) }
        out.writeMember("when", condition.rawValue)
    }

    /// JSON that `init` accepts.
    package var json: [UInt8] { JSONWriter.object { writeMembers(into: &$0) } }
}

/// A flaw of a notification, in one sentence for its author.
package struct NotificationProblem: Error, Equatable {
    package let sentence: String

    package init(_ sentence: String) { self.sentence = sentence }
}

/// How much a notification may disturb (Apple, "UNNotificationInterruptionLevel").
package enum InterruptionLevel: String, Sendable, CaseIterable {
    case passive, active, critical
    case timeSensitive = "time-sensitive"
}

/// Reads the members of a notification; null counts as missing.
private struct NotificationBody {
    private let json: JSON

    init(_ json: JSON) { self.json = json }

    func value(_ key: String) -> JSON? { json[key].flatMap { $0.isNull ? nil : $0 } }

    func text(
        _ key: String, upTo longest: Int, mayBeEmpty: Bool = false
    ) throws(NotificationProblem) -> String? {
        guard let value = value(key) else { return nil }
        guard let text = value.string, !text.utf8.contains(0), mayBeEmpty || !text.isEmpty else {
            throw NotificationProblem("\(key) is not a text\(mayBeEmpty ? "" : ", or is empty").")
        }
        guard text.utf8.count <= longest else {
            throw NotificationProblem("\(key) has more than \(longest) bytes.")
        }
        return text
    }

    func word<Word: RawRepresentable & CaseIterable>(
        _ key: String, of type: Word.Type
    ) throws(NotificationProblem) -> Word? where Word.RawValue == String {
        guard let value = value(key) else { return nil }
        guard let word = value.string.flatMap({ Word(rawValue: $0) }) else {
            let words = Word.allCases.map(\.rawValue).joined(separator: ", ")
            throw NotificationProblem("\(key) is none of \(words).")
        }
        return word
    }
}

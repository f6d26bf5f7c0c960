package import Hub
package import Wire

/// An alert for a phone: the contents of `aps`, and the members that the app needs to open the right place.
package struct AlertPayload: Sendable, Equatable {
    package var title: AlertText?
    package var subtitle: AlertText?
    package var body: AlertText?
    /// The number on the app's icon; nil leaves it as it is, 0 removes it.
    package var badge: Int?
    package var sound: String?
    /// Alerts of one thread are shown together.
    package var threadID: String?
    package var category: String?
    package var interruptionLevel: InterruptionLevel?
    /// From 0 to 1: which of the app's alerts a summary shows first.
    package var relevanceScore: Double?
    /// The conversation that a tap on the alert opens.
    package var conversationID: String?
    /// The message that a tap on the alert shows.
    package var messageID: String?
    /// The id under which a backend sent it.
    package var notificationID: String?
    /// Members beside `aps`, each name once.
    package var fields: [PayloadField] = []

    package init(
        title: AlertText?, subtitle: AlertText? = nil, body: AlertText?, badge: Int? = nil, sound: String? = "default",
        threadID: String? = nil, category: String? = nil, conversationID: String? = nil, messageID: String? = nil
    ) {
        self.title = title
        self.subtitle = subtitle
        self.body = body
        self.badge = badge
        self.sound = sound
        self.threadID = threadID
        self.category = category
        self.conversationID = conversationID
        self.messageID = messageID
    }

    /// The JSON for APNs, of any size.
    package var bytes: [UInt8] {
        JSONWriter.object { whole in
            whole.object("aps") { aps in
                if title != nil || subtitle != nil || body != nil {
                    aps.object("alert") { alert in
                        title?.write("title", into: &alert)
                        subtitle?.write("subtitle", into: &alert)
                        body?.write("body", into: &alert)
                    }
                }
                if let badge { aps.writeMember("badge", max(0, badge)) }
                if let sound { aps.writeMember("sound", sound) }
                if let threadID { aps.writeMember("thread-id", threadID) }
                if let category { aps.writeMember("category", category) }
                if let interruptionLevel { aps.writeMember("interruption-level", interruptionLevel.rawValue) }
                if let relevanceScore { aps.writeMember("relevance-score", relevanceScore) }
                // Lets the app's own extension decrypt the alert, or load an avatar.
                aps.writeMember("mutable-content", 1)
            }
            if let conversationID { whole.writeMember("conversationId", conversationID) }
            if let messageID { whole.writeMember("messageId", messageID) }
            if let notificationID { whole.writeMember("notificationId", notificationID) }
            for field in fields { whole.writeMember(field.name, json: field.value) }
        }
    }

    /// The size of the final JSON, in bytes.
    package var size: Int { bytes.count }
}

extension AlertPayload {
    /// Returns the JSON for a kind of service, within its limit in bytes.
    ///
    /// - Parameters:
    ///   - tag: a phone or a browser shows only the newest alert with the same tag. APNs gets it beside the payload.
    ///   - style: the appearance on Android.
    package func fitted(
        for kind: PushKind, tag: String, _ style: AndroidStyle
    ) throws(PayloadError) -> (bytes: [UInt8], isCut: Bool) {
        switch kind {
        case .apns: try fitted()
        case .fcm: try fitted(to: PayloadLimit.fcm) { $0.messageBytes(tag: tag, style) }
        case .web: try fitted(to: PayloadLimit.web) { $0.browserBytes(tag: tag) }
        }
    }

    /// Returns the JSON within a limit, in bytes. Long texts are cut between graphemes and end with "…": first the body, then the
    /// subtitle, then the title; in localized lines the longest argument. Ids and keys are never cut: if they are too long, this
    /// throws.
    package func fitted(
        to limit: Int = PayloadLimit.device, as rendered: (AlertPayload) -> [UInt8] = { $0.bytes }
    ) throws(PayloadError) -> (bytes: [UInt8], isCut: Bool) {
        var alert = self
        for line in [\AlertPayload.body, \.subtitle, \.title] {
            // Each pass cuts one argument; a localized line may have several long ones.
            while true {
                let bytes = rendered(alert)
                if bytes.count <= limit { return (bytes, alert != self) }
                let shorter = alert[keyPath: line]?.shortened(by: bytes.count - limit)
                guard shorter != alert[keyPath: line] else { break }
                alert[keyPath: line] = shorter
            }
        }
        throw PayloadError.tooLarge(bytes: rendered(alert).count, limit: limit)
    }
}

/// A member beside `aps`.
package struct PayloadField: Sendable, Equatable {
    package let name: String
    /// JSON.
    package let value: [UInt8]

    package init(name: String, value: [UInt8]) {
        self.name = name
        self.value = value
    }
}

extension AlertPayload {
    /// A picture to show: the app's own member `image`, if it is an https URL.
    var image: String? {
        guard let field = fields.first(where: { $0.name == "image" }),
            let url = JSON(trusted: field.value[...]).string, url.hasPrefix("https://")
        else { return nil }
        return url
    }

    /// The members that the app needs to open the right place, and its own: name and JSON.
    var data: [PayloadField] {
        let places = [("conversationId", conversationID), ("messageId", messageID), ("notificationId", notificationID)]
        return places.compactMap { name, text in text.map { PayloadField(name: name, value: JSONString.encode($0)) } }
            + fields
    }
}

extension AlertPayload {
    /// Adds the members of an object beside `aps`: existing ones are replaced, except for those that the hub itself writes.
    package mutating func add(fieldsOf object: JSON) {
        object.forEachMember { member in
            guard !NotificationContent.ownFields.contains(where: { member.isNamed($0) }) else { return }
            let field = PayloadField(name: member.key, value: Array(member.value.bytes))
            if let index = fields.firstIndex(where: { member.isNamed($0.name) }) {
                fields[index] = field
            } else {
                fields.append(field)
            }
        }
    }
}

/// A line of an alert.
package enum AlertText: Sendable, Equatable {
    case text(String)
    /// A key in the app's `Localizable` strings; the phone inserts the arguments, in its own language.
    case localized(key: String, arguments: [String])

    func write(_ name: String, into alert: inout JSONWriter) {
        switch self {
        case .text(let text): alert.writeMember(name, text)
        case .localized(let key, let arguments):
            // The keys of the body have no prefix.
            let prefix = name == "body" ? "" : name + "-"
            alert.writeMember(prefix + "loc-key", key)
            if !arguments.isEmpty { alert.writeMember(prefix + "loc-args", arguments) }
        }
    }

    /// Returns the line without at least `excess` bytes of its JSON, if it has that many; a localized line is cut in its longest
    /// argument.
    func shortened(by excess: Int) -> AlertText {
        switch self {
        case .text(let text): return .text(Self.shortened(text, by: excess))
        case .localized(let key, var arguments):
            guard let longest = arguments.indices.max(by: { arguments[$0].utf8.count < arguments[$1].utf8.count })
            else { return self }
            arguments[longest] = Self.shortened(arguments[longest], by: excess)
            return .localized(key: key, arguments: arguments)
        }
    }

    private static func shortened(_ text: String, by excess: Int) -> String {
        let ellipsis = "…"
        var room = size(of: text) - excess - ellipsis.utf8.count
        var end = text.startIndex
        while end < text.endIndex {
            let next = text.index(after: end)
            room -= size(of: String(text[end..<next]))
            guard room >= 0 else { break }
            end = next
        }
        while end > text.startIndex, text[text.index(before: end)].isWhitespace { end = text.index(before: end) }
        let short = String(text[..<end]) + ellipsis
        return size(of: short) < size(of: text) ? short : text
    }

    /// The size of a text in JSON without its quotes, in bytes.
    private static func size(of text: String) -> Int { JSONString.encodedCount(text) - 2 }
}

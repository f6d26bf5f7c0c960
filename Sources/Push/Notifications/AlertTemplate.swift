import Hub
package import Wire

/// The configured template of alerts.
package struct AlertTemplate: Sendable, Equatable {
    package var title: AlertTextTemplate?
    package var subtitle: AlertTextTemplate?
    package var body: AlertTextTemplate?
    /// The name of a file in the app, or `default`; nil for a silent alert.
    package var sound: TextTemplate?
    package var category: TextTemplate?
    /// One of `InterruptionLevel`; any other value leaves it to the phone.
    package var interruptionLevel: TextTemplate?
    /// A number from 0 to 1; any other value leaves it to the phone.
    package var relevanceScore: TextTemplate?
    /// Alerts of one thread are shown together; nil groups those of a conversation.
    package var thread: TextTemplate?
    /// An object with the members beside `aps`.
    package var fields: JSONTemplate?

    package init(title: AlertTextTemplate?, body: AlertTextTemplate?, sound: TextTemplate?) {
        self.title = title
        self.body = body
        self.sound = sound
    }

    /// - Parameters:
    ///   - variables: the members of the object `payload` are put beside `aps`, in place of the template's members of the same names.
    ///   - badge: the number on the app's icon; nil leaves it as it is.
    ///   - conversation: opened by a tap; its alerts are shown together (`thread-id`), unless the template says otherwise.
    package func payload(
        _ variables: TemplateVariables, badge: Int?, conversation: Name?, message: String?
    ) -> AlertPayload {
        var payload = AlertPayload(
            title: title?.filled(with: variables), subtitle: subtitle?.filled(with: variables),
            body: body?.filled(with: variables), badge: badge, sound: Self.filled(sound, variables),
            threadID: thread.map { Self.filled($0, variables) } ?? conversation?.text,
            category: Self.filled(category, variables), conversationID: conversation?.text, messageID: message)
        payload.interruptionLevel = Self.filled(interruptionLevel, variables).flatMap {
            InterruptionLevel(rawValue: $0)
        }
        payload.relevanceScore = Self.filled(relevanceScore, variables).flatMap { Self.score($0) }
        if let fields { payload.add(fieldsOf: fields.json(variables)) }
        if let own = variables["payload"] { payload.add(fieldsOf: own) }
        return payload
    }

    /// Returns nil if nothing is left of the text.
    private static func filled(_ template: TextTemplate?, _ variables: TemplateVariables) -> String? {
        guard let text = template?.text(variables), !text.isEmpty else { return nil }
        return text
    }

    static func score(_ text: String) -> Double? {
        guard let number = Double(text), (0...1).contains(number) else { return nil }
        return number
    }

    /// The variables that the template names.
    package var names: Set<String> {
        let texts = [sound, category, interruptionLevel, relevanceScore, thread].compactMap { $0?.names }
        let lines = [title, subtitle, body].compactMap { $0?.names }
        return (texts + lines + [fields?.names ?? []]).reduce(into: []) { $0.formUnion($1) }
    }
}

/// A configured line of an alert: a text, or a key in the app's `Localizable` strings with arguments.
package enum AlertTextTemplate: Sendable, Equatable {
    case text(TextTemplate)
    case localized(key: String, arguments: [TextTemplate])

    /// Returns the line with the values filled in; nil if nothing is left to show.
    package func filled(with variables: TemplateVariables) -> AlertText? {
        switch self {
        case .text(let template):
            let text = template.text(variables)
            return text.isEmpty ? nil : .text(text)
        case .localized(let key, let arguments):
            return .localized(key: key, arguments: arguments.map { $0.text(variables) })
        }
    }

    fileprivate var names: Set<String> {
        switch self {
        case .text(let template): template.names
        case .localized(_, let arguments): arguments.reduce(into: []) { $0.formUnion($1.names) }
        }
    }
}

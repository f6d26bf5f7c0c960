package import Wire

/// The template of alerts, as the configuration has it.
package struct AlertTemplate: Sendable, Equatable {
    package var title: AlertTextTemplate?
    package var subtitle: AlertTextTemplate?
    package var body: AlertTextTemplate?
    /// A file's name in the app, or `default`; nil is silent.
    package var sound: String?
    package var category: String?

    package init(
        title: AlertTextTemplate?, subtitle: AlertTextTemplate? = nil, body: AlertTextTemplate?,
        sound: String? = "default", category: String? = nil
    ) {
        self.title = title
        self.subtitle = subtitle
        self.body = body
        self.sound = sound
        self.category = category
    }

    /// - Parameters:
    ///   - badge: the number on the app's icon; nil leaves it as it is.
    ///   - conversation: the alerts of one are shown together (`thread-id`), and a tap opens it.
    package func payload(
        _ variables: TemplateVariables, badge: Int?, conversation: Name?, message: String?
    ) -> AlertPayload {
        AlertPayload(
            title: title?.filled(with: variables), subtitle: subtitle?.filled(with: variables),
            body: body?.filled(with: variables), badge: badge, sound: sound, threadID: conversation?.text,
            category: category, conversationID: conversation?.text, messageID: message)
    }
}

/// A line of an alert as the configuration has it: a text, or a key in the app's `Localizable` strings with arguments.
package enum AlertTextTemplate: Sendable, Equatable {
    case text(TextTemplate)
    case localized(key: String, arguments: [TextTemplate])

    /// The line with the values put in; nil where nothing is left to show.
    package func filled(with variables: TemplateVariables) -> AlertText? {
        switch self {
        case .text(let template):
            let text = template.text(variables)
            return text.isEmpty ? nil : .text(text)
        case .localized(let key, let arguments):
            return .localized(key: key, arguments: arguments.map { $0.text(variables) })
        }
    }
}

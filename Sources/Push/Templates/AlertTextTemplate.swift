/// A line of an alert as the configuration has it: a text, or a key in the app's `Localizable` strings with arguments.
package enum AlertTextTemplate: Sendable, Equatable {
    case text(TextTemplate)
    case localized(key: String, arguments: [TextTemplate])

    /// Nil where nothing is left to show.
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

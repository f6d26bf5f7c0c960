import Hub
package import Wire

extension AlertTemplate {
    /// Reads the configuration of single tables (`alerts.templates`): an object with a section for each `SCHEMA.TABLE`, holding the
    /// settings for the rows of that table.
    ///
    /// - Parameter general: the template of alerts about all other tables, and of settings that a section omits.
    package static func sections(
        of source: String, otherwise general: AlertTemplate
    ) throws(TemplateError) -> [Name: AlertTemplate] {
        let json: JSON
        do { json = try JSON(parsing: Array(source.utf8)) } catch {
            throw TemplateError(place: "byte \(error.offset + 1)", problem: "this is not JSON (RFC 8259) from here on")
        }
        var members: [(table: String, section: JSON)] = []
        json.forEachMember { members.append(($0.key, $0.value)) }
        var templates: [Name: AlertTemplate] = [:]
        for (table, section) in members {
            let place = "the section of \(table)"
            let parts = table.split(separator: ".", omittingEmptySubsequences: false)
            guard parts.count == 2, !parts.contains("") else {
                throw TemplateError(place: place, problem: "a section is for a table, such as public.reminders")
            }
            guard section.kind == .object else {
                throw TemplateError(place: place, problem: "it is no object, such as {\"title\": \"Reminder\"}")
            }
            do {
                templates[Name(table)] = try AlertSection(section).template(otherwise: general)
            } catch {
                throw TemplateError(place: "\(place), \(error.place)", problem: error.problem)
            }
        }
        return templates
    }
}

/// One table's section of `alerts.templates`.
private struct AlertSection {
    private var texts: [String: JSON] = [:]

    private static let keys = [
        "title", "subtitle", "body", "title_key", "title_arguments", "body_key", "body_arguments", "sound", "category",
        "interruption_level", "relevance_score", "thread", "payload",
    ]

    init(_ json: JSON) throws(TemplateError) {
        var unknown: String?
        json.forEachMember { member in
            if Self.keys.contains(member.key) {
                if !member.value.isNull { texts[member.key] = member.value }
            } else {
                unknown = unknown ?? member.key
            }
        }
        guard let unknown else { return }
        throw TemplateError(
            place: unknown, problem: "there is no such key; there are \(Self.keys.joined(separator: ", "))")
    }

    func template(otherwise general: AlertTemplate) throws(TemplateError) -> AlertTemplate {
        var template = general
        template.title = try line("title", otherwise: general.title)
        if let subtitle = try text("subtitle") { template.subtitle = .text(subtitle) }
        template.body = try line("body", otherwise: general.body)
        template.sound = try text("sound") ?? general.sound
        template.category = try text("category") ?? general.category
        template.thread = try text("thread") ?? general.thread
        template.interruptionLevel =
            try text("interruption_level") {
                InterruptionLevel(rawValue: $0) != nil
            } problem: {
                "it is none of " + InterruptionLevel.allCases.map(\.rawValue).joined(separator: ", ")
            } ?? general.interruptionLevel
        template.relevanceScore =
            try text("relevance_score") {
                AlertTemplate.score($0) != nil
            } problem: {
                "it is no number from 0 to 1"
            } ?? general.relevanceScore
        template.fields = try payload ?? general.fields
        return template
    }

    /// - Parameters:
    ///   - isRight: checks a text without variables.
    ///   - problem: describes one that fails the check.
    private func text(
        _ key: String, isRight: (String) -> Bool = { _ in true }, problem: () -> String = { "" }
    ) throws(TemplateError) -> TextTemplate? {
        guard let value = texts[key] else { return nil }
        guard value.kind == .string || value.kind == .number else {
            throw TemplateError(place: key, problem: "it is no text")
        }
        let template = try template(value.string ?? value.description, in: key)
        guard template.names.isEmpty else { return template }
        guard isRight(template.text(TemplateVariables())) else { throw TemplateError(place: key, problem: problem()) }
        return template
    }

    private func template(_ text: String, in key: String) throws(TemplateError) -> TextTemplate {
        do { return try TextTemplate(text) } catch { throw error.inside(key) }
    }

    /// Reads a section's line: a text, or a key of the app's strings with arguments.
    private func line(_ name: String, otherwise general: AlertTextTemplate?) throws(TemplateError) -> AlertTextTemplate?
    {
        let arguments = try self.arguments(name + "_arguments")
        if let key = try text(name + "_key") {
            return .localized(key: key.text(TemplateVariables()), arguments: arguments ?? [])
        }
        if let text = try text(name) { return .text(text) }
        if let arguments, case .localized(let key, _) = general { return .localized(key: key, arguments: arguments) }
        return general
    }

    /// Reads a list, or one text with | between its parts.
    private func arguments(_ key: String) throws(TemplateError) -> [TextTemplate]? {
        guard let value = texts[key] else { return nil }
        let parts: [String]
        switch value.kind {
        case .array: parts = value.elements.map { $0.string ?? $0.description }
        case .string:
            parts = (value.string ?? "").split(separator: "|", omittingEmptySubsequences: false).map { String($0) }
        default: throw TemplateError(place: key, problem: "it is no text and no list")
        }
        var templates: [TextTemplate] = []
        for part in parts { templates.append(try template(part, in: key)) }
        return templates
    }

    private var payload: JSONTemplate? {
        get throws(TemplateError) {
            guard let value = texts["payload"] else { return nil }
            guard value.kind == .object else { throw TemplateError(place: "payload", problem: "it is no object") }
            var taken: String?
            value.forEachMember { member in
                if let own = NotificationContent.ownFields.first(where: { member.isNamed($0) }) { taken = own }
            }
            if let taken { throw TemplateError(place: "payload", problem: "\(taken) is written by the hub itself") }
            do { return try JSONTemplate(value.description) } catch { throw error.inside("payload") }
        }
    }
}

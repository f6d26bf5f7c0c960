import Settings
import Wire

extension [EffectiveValue] {
    /// An array of objects, in the order of the table.
    var jsonText: String { "[\n" + map(\.jsonText).joined(separator: ",\n") + "\n]" }
}

extension EffectiveValue {
    /// The setting, what it may be, its value and who set it; secrets are masked.
    fileprivate var jsonText: String {
        var members: [(name: String, json: String)] = [
            ("key", quoted(setting.key)), ("value", value == nil ? "null" : plain(value)),
            ("origin", quoted("\(origin)")), ("default", setting.isSecret ? "null" : bare(setting.standard)),
            ("kind", quoted(setting.kind.name)), ("expected", quoted(setting.kind.expectation)),
            ("unit", setting.unit.map(quoted) ?? "null"), ("variable", quoted(setting.environmentName)),
            ("secret", "\(setting.isSecret)"), ("reloaded", "\(setting.isReloaded)"),
        ]
        if case .integer(let range) = setting.kind {
            members += [("least", "\(range.lowerBound)"), ("most", "\(range.upperBound)")]
        }
        return "{" + members.map { "\(quoted($0.name)): \($0.json)" }.joined(separator: ", ") + "}"
    }

    private func plain(_ value: SettingValue?) -> String { setting.isSecret ? quoted(printed) : bare(value) }

    private func bare(_ value: SettingValue?) -> String {
        switch value {
        case nil: "null"
        case .text(let text): quoted(text)
        case .integer, .toggle: value?.description ?? "null"
        }
    }

    private func quoted(_ text: String) -> String { String(decoding: JSONString.encode(text), as: UTF8.self) }
}

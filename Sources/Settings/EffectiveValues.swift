/// The winning value of every setting, by setting.
///
/// A setting that is not in the table, or read as something that its kind is not, is a slip in this target: it traps,
/// and the first test that loads anything finds it.
struct EffectiveValues {
    let ordered: [EffectiveValue]
    private let byKey: [String: EffectiveValue]

    init(_ values: [EffectiveValue]) {
        ordered = values
        byKey = Dictionary(uniqueKeysWithValues: values.map { ($0.setting.key, $0) })
    }

    subscript(_ setting: Setting) -> EffectiveValue {
        guard let value = byKey[setting.key] else { preconditionFailure("\(setting.key) is not in Setting.all") }
        return value
    }

    func text(_ setting: Setting) -> String? {
        switch self[setting].value {
        case nil: nil
        case .text(let text): text
        default: preconditionFailure("\(setting.key) is no text")
        }
    }

    /// Empty where nobody set it.
    func words(_ setting: Setting, separators: String = ",") -> [String] {
        text(setting).map { Kind.words(in: $0, separators: separators) } ?? []
    }

    func requiredText(_ setting: Setting) -> String {
        guard let text = text(setting) else { preconditionFailure("\(setting.key) has no default") }
        return text
    }

    func integer(_ setting: Setting) -> Int {
        guard case .integer(let number) = self[setting].value else {
            preconditionFailure("\(setting.key) is no number")
        }
        return number
    }

    func toggle(_ setting: Setting) -> Bool {
        guard case .toggle(let isOn) = self[setting].value else { preconditionFailure("\(setting.key) is no toggle") }
        return isOn
    }

    /// "timeouts.ping_after (25, default) must be less than timeouts.idle (20, ROOST_TIMEOUTS_IDLE), or …"
    func conflict(_ one: Setting, _ other: Setting, _ relation: String, _ why: String) -> ConfigurationError {
        ConfigurationError(
            message: "\(one.key) (\(self[one].printed), \(self[one].origin)) \(relation) \(other.key) "
                + "(\(self[other].printed), \(self[other].origin)), \(why).")
    }
}

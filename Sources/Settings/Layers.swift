import FoundationEssentials

extension RoostConfiguration {
    /// The standard places of the file; the first that exists is used, and none is required.
    package static let standardFiles = ["config/roost.yaml", "/etc/roost/roost.yaml"]

    /// Loads the configuration: flags override environment variables, which override the file, which overrides the
    /// defaults. Reads a file, and so may wait for a disk.
    ///
    /// - Parameters:
    ///   - file: the file named by `--config`, which must exist. Nil: the file named by `ROOST_CONFIG`, or else the
    ///     first existing one of `files`.
    ///   - flags: the values of other flags as typed, by setting key.
    package static func load(
        file: String? = nil, flags: [String: String] = [:],
        environment: [String: String] = ProcessInfo.processInfo.environment,
        files: [String] = standardFiles, cores: Int = ProcessInfo.processInfo.activeProcessorCount
    ) throws(ConfigurationError) -> RoostConfiguration {
        let variables = Layer(environment: environment)
        let variable = environment[Setting.fileVariable].flatMap { $0.isEmpty ? nil : $0 }
        let path = try SettingsPath.find(flag: file, variable: variable, files: files)
        var layers = [Layer(flags: flags), variables]
        if let path { layers.append(try SettingsFile(path: path).readLayer()) }
        var values: [EffectiveValue] = []
        for setting in Setting.all { values.append(try effectiveValue(setting, layers)) }
        return try RoostConfiguration(
            values: EffectiveValues(values), file: path, cores: cores,
            warnings: UnknownVariables(in: environment).sentences)
    }

    /// The first layer that sets the value wins, but an invalid value in a lower layer is an error all the same:
    /// otherwise it would come to light at the worst moment, when the layer above is removed.
    private static func effectiveValue(_ setting: Setting, _ layers: [Layer]) throws(ConfigurationError)
        -> EffectiveValue
    {
        var winner: EffectiveValue?
        for layer in layers {
            guard let found = try layer.value(of: setting), winner == nil else { continue }
            winner = found
        }
        return winner ?? EffectiveValue(setting: setting, value: setting.standard, origin: .standard)
    }
}

/// One source of values: the flags, the environment, or the file.
struct Layer {
    struct Entry {
        let content: Content
        let origin: Origin
    }

    enum Content: Equatable {
        case text(String)
        /// Only a file can contain lists, and no setting takes one.
        case list
    }

    /// By the setting's key. Missing entries are not set in this layer.
    private let entries: [String: Entry]

    init(_ entries: [String: Entry]) {
        self.entries = entries
    }

    /// The values typed on the command line, by setting key. A flag with an empty value has a wrong value, not none.
    init(flags: [String: String]) {
        var entries: [String: Entry] = [:]
        for (key, text) in flags {
            guard let setting = Setting.all.first(where: { $0.key == key }) else {
                preconditionFailure("a flag sets \(key), which is not in Setting.all")
            }
            entries[key] = Entry(content: .text(text), origin: .flag(setting.flagName))
        }
        self.init(entries)
    }

    /// The values of environment variables; an empty one sets nothing. `UnknownVariables` handles those that are no
    /// settings.
    init(environment: [String: String]) {
        let variables = environment.filter { !$0.value.isEmpty }
        var entries: [String: Entry] = [:]
        for setting in Setting.all {
            let names = [setting.environmentName] + (setting.alias.map { [$0] } ?? [])
            guard let name = names.first(where: { variables[$0] != nil }), let text = variables[name] else { continue }
            entries[setting.key] = Entry(content: .text(text), origin: .variable(name))
        }
        self.init(entries)
    }

    /// Nil if this layer does not set it.
    func value(of setting: Setting) throws(ConfigurationError) -> EffectiveValue? {
        guard let entry = entries[setting.key] else { return nil }
        guard case .text(let text) = entry.content else { throw valueError(setting, entry, found: "is a list") }
        guard let value = setting.kind.parseValue(text) else {
            throw valueError(setting, entry, found: found(setting, text), hint: serviceLinkHint(entry, text))
        }
        return EffectiveValue(setting: setting, value: value, origin: entry.origin)
    }

    /// Describes a wrong value, without revealing a secret.
    private func found(_ setting: Setting, _ text: String) -> String {
        guard setting.isSecret else { return "is '\(Quotation.excerpt(text))'" }
        return switch setting.kind {
        case .connection, .webURL, .redisURL: "has another form (not shown, as it may hold a password)"
        default: "has \(text.utf8.count) bytes"
        }
    }

    /// Kubernetes sets variables for each service; those for one named `roost-http` collide with Roost's.
    private func serviceLinkHint(_ entry: Entry, _ text: String) -> String {
        guard case .variable(let name) = entry.origin, ServiceLink.isOne(name, text) else { return "" }
        return "; Kubernetes sets it for a service of that name, and `enableServiceLinks: false` in the pod stops that"
    }

    private func valueError(_ setting: Setting, _ entry: Entry, found: String, hint: String = "") -> ConfigurationError
    {
        ConfigurationError(
            message: "\(entry.origin.errorSubject(setting)) \(found), expected \(setting.kind.expectation)\(hint).")
    }
}

/// The source of a value, strongest first: a flag, an environment variable, the file, the default.
package enum Origin: Sendable, Equatable, CustomStringConvertible {
    case flag(String)
    case variable(String)
    /// Lines are counted from 1.
    case file(String, line: Int)
    case standard

    /// The form in errors and in `roost config print`.
    package var description: String {
        switch self {
        case .flag(let name), .variable(let name): name
        case .file(let path, let line): "\(path):\(line)"
        case .standard: "default"
        }
    }

    /// The beginning of an error about a setting's value: for a file its place and the key; a flag or variable names
    /// both.
    func errorSubject(_ setting: Setting) -> String {
        switch self {
        case .flag(let name), .variable(let name): name
        case .file: "\(self): \(setting.key)"
        case .standard: setting.key
        }
    }
}

/// A setting, the winning value, and its origin.
package struct EffectiveValue: Sendable {
    package let setting: Setting
    /// Nil if it is not set and has no default.
    package let value: SettingValue?
    package let origin: Origin

    /// The value in printable form; secrets are masked.
    package var printed: String {
        guard let value else { return "" }
        guard setting.isSecret else { return value.description }
        return switch setting.kind {
        case .connection: Mask.connection(value.description)
        case .webURL, .redisURL: Mask.url(value.description)
        default: Mask.hidden
        }
    }
}

/// The winning values of all settings.
///
/// Reading a setting that is not in the table, or as another kind, is a bug in this target: it traps, and the first
/// test that loads anything finds it.
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

    /// Empty if it is not set.
    func words(_ setting: Setting, separators: String = ",") -> [String] {
        text(setting).map { Kind.splitWords(in: $0, separators: separators) } ?? []
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
    func conflictError(_ one: Setting, _ other: Setting, _ relation: String, _ why: String) -> ConfigurationError {
        ConfigurationError(
            message: "\(one.key) (\(self[one].printed), \(self[one].origin)) \(relation) \(other.key) "
                + "(\(self[other].printed), \(self[other].origin)), \(why).")
    }
}

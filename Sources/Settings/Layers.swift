import FoundationEssentials

extension RoostConfiguration {
    /// Where the file is looked for when nobody names one; the first that exists is taken, and none is fine.
    package static let standardFiles = ["config/roost.yaml", "/etc/roost/roost.yaml"]

    /// Reads the configuration: flags over environment variables over the file over the defaults. Reads a file, and so may
    /// wait for a disk.
    ///
    /// - Parameters:
    ///   - file: what `--config` names; it must exist. Nil: what `ROOST_CONFIG` names, else the first of `files`.
    ///   - flags: the values of other flags as they were typed, by setting key.
    package static func load(
        file: String? = nil, flags: [String: String] = [:],
        environment: [String: String] = ProcessInfo.processInfo.environment,
        files: [String] = standardFiles, cores: Int = ProcessInfo.processInfo.activeProcessorCount
    ) throws(ConfigurationError) -> RoostConfiguration {
        let variables = Layer(environment: environment)
        let variable = environment[Setting.fileVariable].flatMap { $0.isEmpty ? nil : $0 }
        let path = try SettingsPath.find(flag: file, variable: variable, files: files)
        var layers = [Layer(flags: flags), variables]
        if let path { layers.append(try SettingsFile(path: path).layer()) }
        var values: [EffectiveValue] = []
        for setting in Setting.all { values.append(try effective(setting, layers)) }
        return try RoostConfiguration(
            values: EffectiveValues(values), file: path, cores: cores,
            warnings: UnknownVariables(in: environment).sentences)
    }

    /// The first layer that sets it wins, but a wrong value below it is an error all the same: it would come to light
    /// at the worst moment, when the layer above is taken away.
    private static func effective(_ setting: Setting, _ layers: [Layer]) throws(ConfigurationError) -> EffectiveValue {
        var winner: EffectiveValue?
        for layer in layers {
            guard let found = try layer.value(of: setting), winner == nil else { continue }
            winner = found
        }
        return winner ?? EffectiveValue(setting: setting, value: setting.standard, origin: .standard)
    }
}

/// One of the places that values come from, with what it sets: the flags, the environment, or the file.
struct Layer {
    struct Entry {
        let content: Content
        let origin: Origin
    }

    enum Content: Equatable {
        case text(String)
        /// Only a file has lists, and no setting takes one.
        case list
    }

    /// By the setting's key. What is not in here is not set in this place.
    private let entries: [String: Entry]

    init(_ entries: [String: Entry]) {
        self.entries = entries
    }

    /// What was typed on the command line, by setting key. A flag without a text is a wrong value, not an unset one.
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

    /// What environment variables set; an empty one sets nothing. Those that nobody knows are for `UnknownVariables`.
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

    /// Nil: this layer does not set it.
    func value(of setting: Setting) throws(ConfigurationError) -> EffectiveValue? {
        guard let entry = entries[setting.key] else { return nil }
        guard case .text(let text) = entry.content else { throw wrong(setting, entry, found: "is a list") }
        guard let value = setting.kind.read(text) else {
            throw wrong(setting, entry, found: found(setting, text), hint: hint(entry, text))
        }
        return EffectiveValue(setting: setting, value: value, origin: entry.origin)
    }

    /// What is there instead, without what may be secret of it.
    private func found(_ setting: Setting, _ text: String) -> String {
        guard setting.isSecret else { return "is '\(Quotation.of(text))'" }
        return switch setting.kind {
        case .connection, .webURL, .redisURL: "has another form (not shown, as it may hold a password)"
        default: "has \(text.utf8.count) bytes"
        }
    }

    /// Kubernetes sets variables for each service, which for one that is named `roost-http` are some of ours.
    private func hint(_ entry: Entry, _ text: String) -> String {
        guard case .variable(let name) = entry.origin, ServiceLink.isOne(name, text) else { return "" }
        return "; Kubernetes sets it for a service of that name, and `enableServiceLinks: false` in the pod stops that"
    }

    private func wrong(_ setting: Setting, _ entry: Entry, found: String, hint: String = "") -> ConfigurationError {
        ConfigurationError(
            message: "\(entry.origin.subject(setting)) \(found), expected \(setting.kind.expectation)\(hint).")
    }
}

/// Where a value came from, strongest first: a flag, an environment variable, the file, or nobody.
package enum Origin: Sendable, Equatable, CustomStringConvertible {
    case flag(String)
    case variable(String)
    /// Lines are counted from 1.
    case file(String, line: Int)
    case standard

    /// As errors and `roost config print` say it.
    package var description: String {
        switch self {
        case .flag(let name), .variable(let name): name
        case .file(let path, let line): "\(path):\(line)"
        case .standard: "default"
        }
    }

    /// How an error begins that is about a setting's value: in a file the place and the key; a flag or a variable is both.
    func subject(_ setting: Setting) -> String {
        switch self {
        case .flag(let name), .variable(let name): name
        case .file: "\(self): \(setting.key)"
        case .standard: setting.key
        }
    }
}

/// A setting, the value that won, and who set it.
package struct EffectiveValue: Sendable {
    package let setting: Setting
    /// Nil: nobody set it and it has no default.
    package let value: SettingValue?
    package let origin: Origin

    /// The value as it may be shown to anybody: of a secret, only that it is there.
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

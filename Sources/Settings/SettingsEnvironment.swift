import Configuration

/// Our environment variables: what they say, and whether all of them are known.
struct SettingsEnvironment {
    /// The file that `ROOST_CONFIG` names.
    let file: String?
    let provider: any ConfigProvider
    /// By the name of ours: the variable that was taken in its place.
    private let aliases: [String: String]

    /// Refuses variables that start with `ROOST_` and that nobody knows: a misspelt one would otherwise be a setting
    /// that is silently not made.
    init(_ environment: [String: String]) throws(ConfigurationError) {
        var ours = environment.filter { $0.key.hasPrefix(Setting.environmentPrefix + "_") && !$0.value.isEmpty }
        for name in ours.keys.sorted() { try Self.check(name) }
        file = ours[Setting.fileVariable]
        var aliases: [String: String] = [:]
        for setting in Setting.all {
            guard let alias = setting.alias, let value = environment[alias], !value.isEmpty,
                ours[setting.environmentName] == nil
            else { continue }
            ours[setting.environmentName] = value
            aliases[setting.environmentName] = alias
        }
        self.aliases = aliases
        let secrets = Set(Setting.all.filter(\.isSecret).map(\.environmentName))
        provider = EnvironmentVariablesProvider(environmentVariables: ours, secretsSpecifier: .specific(secrets))
            .prefixKeys(with: ConfigKey([Setting.environmentPrefix.lowercased()]))
    }

    /// The variable that a setting was read from.
    func name(of setting: Setting) -> String { aliases[setting.environmentName] ?? setting.environmentName }

    private static func check(_ name: String) throws(ConfigurationError) {
        let known = Setting.all.map(\.environmentName) + [Setting.fileVariable, Setting.postgresProgramsVariable]
        if known.contains(name) { return }
        let advice =
            NearestName.find(name, among: known).map { "did you mean \($0)?" }
            ?? "a variable is named after its key, as ROOST_HTTP_PORT after http.port, and `roost config print` shows the keys."
        throw ConfigurationError(message: "there is no environment variable \(Quotation.of(name)); \(advice)")
    }
}

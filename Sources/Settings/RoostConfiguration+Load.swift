import Configuration
import FoundationEssentials

extension RoostConfiguration {
    /// Where the file is looked for when nobody names one; the first that exists is taken, and none is fine.
    package static let standardFiles = ["config/roost.yaml", "/etc/roost/roost.yaml"]

    /// Reads the configuration: flags over environment variables over the file over the defaults.
    ///
    /// - Parameters:
    ///   - file: what `--config` names; it must exist. Nil: what `ROOST_CONFIG` names, else the first of `files`.
    ///   - flags: the values of other flags as they were typed, by setting key.
    package static func load(
        file: String? = nil, flags: [String: String] = [:],
        environment: [String: String] = ProcessInfo.processInfo.environment,
        files: [String] = standardFiles, cores: Int = ProcessInfo.processInfo.activeProcessorCount
    ) async throws(ConfigurationError) -> RoostConfiguration {
        let environment = try SettingsEnvironment(environment)
        let path = try SettingsPath.find(flag: file, variable: environment.file, files: files)

        var layers = [
            Layer(
                provider: InMemoryProvider(values: flagValues(flags)), origin: { .flag($0.flagName) }, blanks: []),
            Layer(provider: environment.provider, origin: { .variable(environment.name(of: $0)) }),
        ]
        if let path {
            let read = try await SettingsFile(path: path)
            layers.append(Layer(provider: read.provider, origin: read.origin, blanks: SettingsFile.blanks))
        }

        var values: [EffectiveValue] = []
        for setting in Setting.all { values.append(try effective(setting, layers)) }
        return try RoostConfiguration(values: EffectiveValues(values), file: path, cores: cores)
    }

    /// The first layer that sets it wins, but a wrong value below it is an error all the same: it would come to light
    /// at the worst moment, when the layer above is taken away.
    private static func effective(_ setting: Setting, _ layers: [Layer]) throws(ConfigurationError) -> EffectiveValue {
        var winner: EffectiveValue?
        for layer in layers {
            guard let value = try layer.value(of: setting), winner == nil else { continue }
            winner = EffectiveValue(setting: setting, value: value, origin: layer.origin(setting))
        }
        return winner ?? EffectiveValue(setting: setting, value: setting.standard, origin: .standard)
    }

    private static func flagValues(_ flags: [String: String]) -> [AbsoluteConfigKey: ConfigValue] {
        var values: [AbsoluteConfigKey: ConfigValue] = [:]
        for (key, text) in flags {
            precondition(Setting.all.contains { $0.key == key }, "a flag sets \(key), which is not in Setting.all")
            let path = AbsoluteConfigKey(key.split(separator: ".").map(String.init))
            values[path] = ConfigValue(.string(text), isSecret: true)
        }
        return values
    }
}

import ArgumentParser
import Settings
import Wire

struct ConfigCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "config",
        abstract: "Check or print the configuration.",
        subcommands: [ConfigCheckCommand.self, ConfigPrintCommand.self]
    )
}

struct ConfigCheckCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "check",
        abstract: "Read the configuration and say whether `roost serve` could start with it.",
        discussion: "Ends with 0, or with 78 after a sentence that names the place and the key."
    )

    @OptionGroup(title: "Configuration")
    var options: ConfigurationOptions

    func run() async throws {
        let configuration = try options.loadAndApply()
        try await configuration.checkForServing()
        // Logs a warning about an expired one.
        _ = try configuration.openCertificate(logger: configuration.logger)
        let changed = configuration.values.filter { $0.value != $0.setting.standard }.map(\.setting.key)
        let file = configuration.file.map { "the file \($0)" } ?? "no file"
        print("configuration is valid: \(file), changed from the defaults: \(changed.joined(separator: ", "))")
    }
}

struct ConfigPrintCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "print",
        abstract: "Print the configuration in force as YAML, and who set each value.",
        discussion: "Secrets are masked. --json also prints what a setting may be and whether a reload changes it."
    )

    @Flag(help: "Print a list of all settings as JSON.")
    var json = false

    @OptionGroup(title: "Configuration")
    var options: ConfigurationOptions

    func run() async throws {
        let configuration = try options.loadAndApply()
        if json {
            StandardOutput.writeLine(configuration.values.jsonText)
        } else {
            print(configuration.printed(), terminator: "")
        }
    }
}

extension [EffectiveValue] {
    /// An array of objects, in the order of the table.
    var jsonText: String { "[\n" + map(\.jsonText).joined(separator: ",\n") + "\n]" }
}

extension EffectiveValue {
    /// The setting, its kind, its value and its origin; secrets are masked.
    fileprivate var jsonText: String {
        var members: [(name: String, json: String)] = [
            ("key", JSONString.quoted(setting.key)), ("value", value == nil ? "null" : maskedJSON(value)),
            ("origin", JSONString.quoted("\(origin)")),
            ("default", setting.isSecret ? "null" : plainJSON(setting.standard)),
            ("kind", JSONString.quoted(setting.kind.name)), ("expected", JSONString.quoted(setting.kind.expectation)),
            ("unit", setting.unit.map(JSONString.quoted) ?? "null"),
            ("variable", JSONString.quoted(setting.environmentName)),
            ("secret", "\(setting.isSecret)"), ("reloaded", "\(setting.isReloaded)"),
        ]
        if case .integer(let range) = setting.kind {
            members += [("least", "\(range.lowerBound)"), ("most", "\(range.upperBound)")]
        }
        return "{" + members.map { "\(JSONString.quoted($0.name)): \($0.json)" }.joined(separator: ", ") + "}"
    }

    private func maskedJSON(_ value: SettingValue?) -> String {
        setting.isSecret ? JSONString.quoted(printed) : plainJSON(value)
    }

    private func plainJSON(_ value: SettingValue?) -> String {
        switch value {
        case nil: "null"
        case .text(let text): JSONString.quoted(text)
        case .integer, .toggle: value?.description ?? "null"
        }
    }
}

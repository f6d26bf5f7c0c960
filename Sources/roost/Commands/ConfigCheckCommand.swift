import ArgumentParser
import Settings

struct ConfigCheckCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "check",
        abstract: "Read the configuration and say whether `roost serve` could start with it.",
        discussion: "Ends with 0 or, after a sentence that names the place and the key, with 78."
    )

    @OptionGroup(title: "Configuration")
    var options: ConfigurationOptions

    func run() async throws {
        let configuration = try await options.load()
        try await configuration.checkForServing()
        // Warns of one that has expired.
        _ = try configuration.openCertificate(logger: configuration.logger)
        let changed = configuration.values.filter { $0.value != $0.setting.standard }.map(\.setting.key)
        let file = configuration.file.map { "the file \($0)" } ?? "no file"
        print("configuration is valid: \(file), changed from the defaults: \(changed.joined(separator: ", "))")
    }
}

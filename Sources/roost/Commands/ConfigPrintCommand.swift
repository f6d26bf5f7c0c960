import ArgumentParser
import Settings

struct ConfigPrintCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "print",
        abstract: "Print the configuration in force as YAML, and who set each value.",
        discussion: "Secrets are masked. --json prints what a setting may be, too, and whether a reload changes it."
    )

    @Flag(help: "Print a list of all settings as JSON.")
    var json = false

    @OptionGroup(title: "Configuration")
    var options: ConfigurationOptions

    func run() async throws {
        let configuration = try await options.load()
        if json {
            StandardOutput.line(configuration.values.jsonText)
        } else {
            print(configuration.printed(), terminator: "")
        }
    }
}

import ArgumentParser
import Settings

struct ConfigPrintCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "print",
        abstract: "Print the configuration in force as YAML, and who set each value.",
        discussion: "Secrets are masked."
    )

    @OptionGroup(title: "Configuration")
    var options: ConfigurationOptions

    func run() async throws {
        let configuration = try await options.load()
        print(configuration.printed(), terminator: "")
    }
}

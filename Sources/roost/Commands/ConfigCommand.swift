import ArgumentParser

struct ConfigCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "config",
        abstract: "Check or print the configuration.",
        subcommands: [ConfigCheckCommand.self, ConfigPrintCommand.self]
    )
}

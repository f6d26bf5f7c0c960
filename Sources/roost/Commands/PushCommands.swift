import ArgumentParser

/// `roost push`, which sends, and `roost push keys`.
struct PushCommands: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "push",
        abstract: "Send notifications to phones by hand, or from a file; make keys for those of browsers.",
        subcommands: [PushCommand.self, PushKeysCommand.self],
        defaultSubcommand: PushCommand.self)
}

import ArgumentParser
import CBuild
import Ops

/// The command line. Each command is a file in `Commands/`; its work is done in the room it belongs to.
@main
struct Roost: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "roost",
        abstract: "A realtime hub for Postgres that speaks Supabase Realtime's protocol.",
        discussion: """
            Configuration comes from flags, ROOST_… environment variables and config/roost.yaml, in this order; \
            `roost config print` shows what is in force. To see it work without any of that: `roost demo`.
            """,
        version: versionAndCommit,
        subcommands: [
            ServeCommand.self, DemoCommand.self, TryCommand.self,
            InitCommand.self, MigrateCommand.self, WatchCommand.self, UnwatchCommand.self,
            TokenCommand.self, PushCommands.self, NotifyCommand.self, AlertsCommand.self,
            TailCommand.self,
            StreamCommand.self,
            ChannelsCommand.self, ChannelPresenceCommand.self, UserCommand.self, DisconnectCommand.self,
            DoctorCommand.self,
            ConfigCommand.self,
        ]
    )

    static let version = "0.1.0"

    /// Empty in a development build.
    static var commit: String { String(cString: roost_commit()) }

    /// `0.1.0 (commit 0123456789ab)`. The version is the first word.
    static var versionAndCommit: String {
        let commit = commit
        return commit.isEmpty ? "\(version) (development build)" : "\(version) (commit \(commit))"
    }

    /// Like ArgumentParser's own, except that a failure prints one sentence and sets its exit status.
    static func main() async {
        ProcessTitle.hideSecrets()
        AddressSpace.boundArenas()
        do {
            var command = try parseAsRoot()
            if var command = command as? any AsyncParsableCommand {
                try await command.run()
            } else {
                try command.run()
            }
        } catch let failure as any Failure {
            StandardError.write("Error: \(failure.sentence)\n")
            exit(withError: ExitCode(failure.status.rawValue))
        } catch {
            exit(withError: error)
        }
    }
}

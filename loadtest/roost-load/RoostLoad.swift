import ArgumentParser
import Glibc

/// The load tester. A scenario is a command in `Commands/` and a behaviour in `Scenarios/`; the sockets below all of them are
/// in `Client/`.
@main
struct RoostLoad: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "roost-load",
        abstract: "Load and measure a hub that speaks Supabase Realtime's protocol.",
        discussion: """
            Exit status: 0 all is well; 1 something was lost, repeated or slower than --expect allows; 2 the test could \
            not be carried out.
            """,
        subcommands: [
            IdleCommand.self, FanoutCommand.self, ChangesCommand.self, ChatCommand.self, PresenceCommand.self,
            StormCommand.self,
            SlowCommand.self, SoakCommand.self, WorkerCommand.self,
        ]
    )

    static func main() {
        do {
            var command = try parseAsRoot()
            try command.run()
        } catch let failure as LoadFailure {
            ErrorOutput.write("Error: \(failure.sentence)\n")
            exit(withError: ExitCode(2))
        } catch {
            exit(withError: error)
        }
    }
}

/// Why a test could not be carried out, as one sentence.
struct LoadFailure: Error {
    let sentence: String

    init(_ sentence: String) { self.sentence = sentence }

    /// A system call that failed, by `errno`.
    static func system(_ doing: String, _ code: Int32 = errno) -> LoadFailure {
        LoadFailure("\(doing) failed: \(String(cString: strerror(code))).")
    }
}

/// Where everything goes that is not a result.
enum ErrorOutput {
    /// Unbuffered. A standard error that takes nothing more leaves nobody to tell, so the outcome is not looked at.
    static func write(_ text: String) {
        var text = text
        text.withUTF8 { _ = Glibc.write(STDERR_FILENO, $0.baseAddress, $0.count) }
    }
}

import Foundation

/// A program around RoostClient, for tests that drive it from outside (`Tests/EndToEnd/test_swift_*.py`).
///
/// `client-probe NAME ARGUMENTS…` runs a scenario. `session` takes commands from standard input.
@main
struct ClientProbe {
    static func main() async throws {
        let arguments = Array(CommandLine.arguments.dropFirst())
        switch arguments.first {
        case "session": try await SessionScenario().run()
        case "outbox": try await OutboxScenario().run()
        default:
            FileHandle.standardError.write(Data("client-probe: no such scenario\n".utf8))
            exit(64)
        }
    }
}

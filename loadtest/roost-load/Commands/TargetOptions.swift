import ArgumentParser
import Glibc

/// The flags that every scenario has.
struct TargetOptions: ParsableArguments {
    @Option(help: ArgumentHelp("The hub.", valueName: "ws-url"))
    var url = "ws://127.0.0.1:4000/realtime/v1/websocket"

    @Option(
        help: ArgumentHelp(
            "The token to connect with; default: ROOST_TOKEN (`roost token` mints one).", valueName: "jwt"))
    var token: String?

    @Option(help: ArgumentHelp("How many sockets may be connecting at a time.", valueName: "count"))
    var ramp = 256

    @Option(help: ArgumentHelp("Seconds between a client's heartbeats, 0 for none.", valueName: "seconds"))
    var heartbeat = 25

    @Option(
        name: .customLong("pid"),
        help: ArgumentHelp("A local process to measure, as hub=PID; may be repeated.", valueName: "name=pid"))
    var processes: [WatchedProcess] = []

    @Flag(help: "Print one line of JSON instead of text.")
    var json = false

    func validate() throws {
        guard ramp > 0, heartbeat >= 0 else { throw ValidationError("--ramp must be over 0, --heartbeat not below.") }
    }

    func endpoint() throws -> Endpoint {
        guard let token = token ?? getenv("ROOST_TOKEN").map({ String(cString: $0) }) else {
            throw LoadFailure("There is no token: give --token or set ROOST_TOKEN; `roost token` mints one.")
        }
        return try Endpoint(url: url, token: token)
    }
}

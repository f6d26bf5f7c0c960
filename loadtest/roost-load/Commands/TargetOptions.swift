import ArgumentParser
import FoundationEssentials
import Glibc

/// Where to, and in which words: what every scenario asks for.
struct TargetOptions: ParsableArguments {
    @Option(help: ArgumentHelp("The hub; wss:// for TLS.", valueName: "ws-url"))
    var url = "ws://127.0.0.1:4000/realtime/v1/websocket"

    @Option(help: ArgumentHelp("The WebSocket's path, instead of the URL's (/socket/websocket).", valueName: "path"))
    var path: String?

    @Option(
        help: ArgumentHelp(
            "The token to connect with; default: ROOST_TOKEN (`roost token` mints one).", valueName: "jwt"))
    var token: String?

    @Option(help: ArgumentHelp("The protocol: 1 (JSON objects) or 2 (JSON arrays).", valueName: "version"))
    var vsn = "2"

    @Option(help: ArgumentHelp("What topics begin with.", valueName: "text"))
    var topicPrefix = "realtime:"

    @Option(help: ArgumentHelp("What broadcasts are called.", valueName: "event"))
    var event = "m"

    @Flag(help: "Plain Phoenix instead of Supabase: joins with {}, events without an envelope, no token needed.")
    var noConfig = false

    @Flag(help: "Broadcast in binary frames, as supabase-js does (--vsn 2).")
    var binary = false

    @Flag(help: "Take any TLS certificate.")
    var insecure = false

    @Option(help: ArgumentHelp("Certificate authorities to trust, instead of the system's.", valueName: "file"))
    var caFile: String?

    @Option(help: ArgumentHelp("How many sockets may be connecting at a time.", valueName: "count"))
    var ramp: Int?

    @Option(help: ArgumentHelp("How many sockets may begin to connect in a second; 0: any number.", valueName: "count"))
    var rampRate = 0.0

    @Option(help: ArgumentHelp("Seconds between a client's heartbeats, 0 for none.", valueName: "seconds"))
    var heartbeat = 25

    @Option(
        help: ArgumentHelp(
            "Loopback addresses to connect from, if the hub is on loopback; 0: one for each 10,000 sockets.",
            valueName: "count"))
    var sources = 0

    @Option(help: ArgumentHelp("Processes to spread the sockets over; 0: as many as they need.", valueName: "count"))
    var workers = 0

    @Option(
        help: ArgumentHelp("The seed of all random choices: the same seed gives the same run.", valueName: "number"))
    var seed: UInt64 = 1

    @Option(
        name: .customLong("pid"),
        help: ArgumentHelp("A local process to measure, as hub=PID; may be repeated.", valueName: "name=pid"))
    var processes: [WatchedProcess] = []

    func validate() throws {
        guard ramp ?? 1 > 0, rampRate >= 0, heartbeat >= 0, sources >= 0, workers >= 0 else {
            throw ValidationError(
                "--ramp must be over 0; --ramp-rate, --heartbeat, --sources and --workers must not be negative.")
        }
        guard Dialect.Version(rawValue: vsn) != nil else { throw ValidationError("--vsn must be 1 or 2, not \(vsn).") }
        guard !binary || vsn == "2" && !noConfig else {
            throw ValidationError(
                "--binary goes with --vsn 2 and without --no-config: other protocols have no such frames.")
        }
    }

    var dialect: Dialect {
        Dialect(
            version: Dialect.Version(rawValue: vsn) ?? .arrays, topicPrefix: topicPrefix, event: event,
            isPlain: noConfig,
            isBinary: binary)
    }

    /// - Parameter speaksPhoenix: whether version and token go with the path.
    func target(speaksPhoenix: Bool = true) throws -> Target {
        var target = try Target(url: url, path: path)
        target.isInsecure = insecure
        target.authorities = caFile
        guard speaksPhoenix else { return target }
        let token = token ?? getenv("ROOST_TOKEN").map { String(cString: $0) }
        guard token != nil || noConfig else {
            throw LoadFailure("There is no token: give --token or set ROOST_TOKEN; `roost token` mints one.")
        }
        target.query = "vsn=\(vsn).0.0" + (token.map { "&apikey=\($0)" } ?? "")
        return target
    }

    func plan(_ scenario: Scenario, sockets: Int, run: UInt32? = nil, raw: RawProtocol? = nil) throws -> LoadPlan {
        var plan = LoadPlan(
            scenario: scenario, target: try target(speaksPhoenix: raw == nil), dialect: dialect, raw: raw,
            run: run ?? .random(in: 1 ... .max), seed: seed, sockets: sockets)
        plan.ramp = ramp ?? plan.ramp
        plan.rampRate = rampRate
        plan.heartbeat = heartbeat
        plan.sources = sources
        return plan
    }
}

/// A token for each subscriber, which its joins bring along: the policies see so many users.
struct TokenList {
    let tokens: [String]

    init(path: String, subscribers: Int) throws {
        let text: String
        do {
            text = try String(contentsOfFile: path, encoding: .utf8)
        } catch {
            throw LoadFailure("The file of tokens \(path) cannot be read.")
        }
        tokens = text.split(separator: "\n").prefix(subscribers).map(String.init)
        guard tokens.count == subscribers else {
            throw LoadFailure(
                "\(path) has \(tokens.count) tokens for \(subscribers) subscribers: it needs one on each line.")
        }
    }
}

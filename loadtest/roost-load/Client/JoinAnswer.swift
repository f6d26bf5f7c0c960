import Wire

/// What a socket sends when it is connected, and how many answers it then waits for.
struct Opening {
    var frames: [[UInt8]] = []
    /// How many messages have to come before it has joined.
    var answers = 0
}

/// What a message means to a socket whose joins are under way, or that has joined.
enum JoinAnswer {
    /// One of the answers that a join waits for.
    case expected
    /// No: why.
    case refused(String)
    /// Something else.
    case other

    private static let signs = ["phx_reply", "\"system\"", "phx_close", "phx_error"].map(Needle.init)

    init(_ message: UnsafeRawBufferPointer, awaitsSubscription: Bool) {
        // What is no answer of this protocol is for others to judge.
        self = .other
        guard Self.signs.contains(where: { $0.occurs(in: message) }) else { return }
        let json: JSON
        do {
            json = try JSON(parsing: Array(message))
        } catch {
            // A message that speaks of phx_reply, and is none: any server's frames may come by here.
            return
        }
        // Version 1 has objects, version 2 arrays of five.
        let parts = json.elements
        let event = parts.count == 5 ? parts[3].string : json["event"]?.string
        let payload = parts.count == 5 ? parts[4] : json["payload"] ?? .null
        let topic = parts.count == 5 ? parts[2].string : json["topic"]?.string
        switch event {
        case "phx_reply":
            if topic == "phoenix" {
                break
            } else if payload["status"]?.string == "ok" {
                self = .expected
            } else {
                self = .refused("refused a join or a message: \(payload["response"]?.description ?? "no reason given")")
            }
        case "system":
            let isSubscription = payload["extension"]?.string == "postgres_changes"
            if payload["status"]?.string == "error" {
                self = .refused("told of an error: \(payload["message"]?.string ?? "no reason given")")
            } else {
                self = awaitsSubscription && isSubscription ? .expected : .other
            }
        case "phx_close": self = .refused("had a channel closed by the server")
        case "phx_error": self = .refused("had a channel fail on the server")
        default: break
        }
    }
}

/// When which socket sends its heartbeat: evenly spread, so that the sockets do not beat in step.
struct Heartbeat {
    private let sockets: Int
    private let interval: UInt64
    private var due: UInt64
    private var turn = 0

    init(sockets: Int, period: Int, from now: UInt64) {
        self.sockets = sockets
        interval = period > 0 && sockets > 0 ? UInt64(period) * 1_000_000_000 / UInt64(sockets) : 0
        due = interval > 0 ? now + interval : .max
    }

    var nextDue: UInt64 { due }

    /// The next socket whose time has come.
    mutating func next(at now: UInt64) -> Int? {
        guard now >= due else { return nil }
        due += interval
        defer { turn = (turn + 1) % sockets }
        return turn
    }
}

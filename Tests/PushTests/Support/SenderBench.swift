import Hub
import TestSupport

@testable import Push

/// A sender over connections that a test plays, on a clock that it moves.
struct SenderBench {
    var sender: Sender<FakeTransport>
    let transport: FakeTransport
    var now = Samples.start
    var outcomes: [(push: Push, outcome: PushOutcome)] = []
    var notices: [Notice] = []

    init(seed: UInt64 = 1, _ change: (inout APNsConfiguration) -> Void = { _ in }) throws {
        var configuration = try Samples.configuration()
        change(&configuration)
        transport = FakeTransport()
        sender = Sender(APNsDialect(configuration), over: transport, random: SeededGenerator(seed: seed))
    }

    init(_ dialect: any PushDialect, seed: UInt64 = 1) {
        transport = FakeTransport()
        sender = Sender(dialect, over: transport, random: SeededGenerator(seed: seed))
    }

    mutating func add(_ pushes: Push...) {
        for push in pushes {
            transport.known[push.id.text] = push
            // A request to a browser's service has no id.
            if case .device(let target) = push.target, target.kind == .web {
                transport.known["/" + target.token.text.split(separator: "/").dropFirst(2).joined(separator: "/")] =
                    push
            }
            sender.add(push, at: now)
        }
        turn()
    }

    /// As the client's loop does.
    mutating func turn() {
        repeat {
            for (connection, event) in take() { sender.handle(event, on: connection, at: now) }
            sender.advance(to: now)
        } while !transport.events.isEmpty
        outcomes += sender.takeFinished().map { ($0.0, $0.1) }
        notices += sender.takeNotices()
    }

    private func take() -> [(connection: UInt64, event: TransportEvent)] {
        defer { transport.events = [] }
        return transport.events
    }

    mutating func pass(seconds: Double) {
        now = now.advanced(by: Int64(seconds * 1000))
        turn()
    }

    mutating func tell(_ event: TransportEvent, on connection: UInt64) {
        transport.events.append((connection, event))
        turn()
    }

    /// The connection that was opened last speaks HTTP/2.
    mutating func connect() {
        if let last = transport.opened.last { tell(.opened, on: last.connection) }
    }

    /// What was sent last is answered.
    mutating func answer(
        _ status: Int, _ reason: String = "", timestamp: Int64? = nil, date: Int64? = nil, retryAfter: Int64? = nil
    ) {
        guard let last = transport.posts.last, transport.land(last.ticket, last.connection) != nil else { return }
        let answer = Answer(status: status, reason: reason, timestamp: timestamp, date: date, retryAfter: retryAfter)
        tell(.answered(last.ticket, answer), on: last.connection)
    }

    /// All that is on its way is taken.
    mutating func takeAll() {
        for (connection, requests) in transport.onTheirWay {
            for ticket in requests.keys where transport.land(ticket, connection) != nil {
                transport.events.append((connection, .answered(ticket, Answer(status: 200))))
            }
        }
        turn()
    }

    var inFlight: Int { transport.onTheirWay.values.reduce(0) { $0 + $1.count } }
}

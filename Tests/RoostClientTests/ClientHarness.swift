import RoostClient
import Wire

/// The client's logic on a manual clock: the test is the world around it.
final class ClientHarness {
    var machine: ClientMachine
    var now: Moment = .zero
    /// Seconds since 1970 at `now` zero.
    var epoch = 1_800_000_000.0
    var random = 0.5

    private(set) var states: [ConnectionState] = []
    private(set) var socketEvents: [SocketEvent] = []
    /// Questions for a token, numbers of sockets that are to be opened and closed.
    private(set) var asked: [Int] = []
    private(set) var opened: [(id: Int, token: String)] = []
    private(set) var closed: [Int] = []
    private(set) var sent: [ClientMessage] = []
    private(set) var channelActions: [ChannelAction] = []
    private(set) var answers: [CallID: RoostError?] = [:]

    /// The room's, which a test may have be another before it opens the room.
    var topic = "realtime:room"
    /// The channel's number.
    static let room = 1

    init(
        _ timing: ConnectionMachine.Timing = ConnectionMachine.Timing(),
        channel: ChannelMachine.Timing = ChannelMachine.Timing()
    ) {
        machine = ClientMachine(timing, channel, presenceKey: "me")
    }

    var at: Instant { Instant(now: now, unix: epoch + seconds(now), random: random) }

    private func seconds(_ duration: Duration) -> Double {
        Double(duration.components.seconds) + Double(duration.components.attoseconds) / 1e18
    }

    /// Feeds an input and takes down what the logic wants.
    func input(_ body: (inout ClientMachine, Instant) -> Void) {
        body(&machine, at)
        for action in machine.takeActions() {
            switch action {
            case .send(let message): sent.append(message)
            case .connection(let action): note(action)
            case .channel(_, .answer(let call, let error)): answers[call] = error
            case .channel(_, let action): channelActions.append(action)
            }
        }
    }

    private func note(_ action: ConnectionAction) {
        switch action {
        case .ask(let id): asked.append(id)
        case .open(let id, let token): opened.append((id, token))
        case .close(let id): closed.append(id)
        case .show(let state): states.append(state)
        case .event(let event): socketEvents.append(event)
        default: break
        }
    }

    /// Lets time pass, and calls `tick` at each moment that the logic asked for.
    func pass(_ duration: Duration) {
        let end = now + duration
        while let deadline = machine.nextDeadline, deadline <= end {
            now = max(now, deadline)
            let before = machine.nextDeadline
            input { $0.handleDeadlines($1) }
            // A deadline that stays where it was would hold the test forever.
            precondition(machine.nextDeadline.map { $0 > now || $0 != before } ?? true, "a deadline that tick ignores")
        }
        now = end
    }

    // MARK: The world

    func connection(_ body: (inout ConnectionMachine, Instant) -> Void) {
        input { machine, at in machine.withConnection(at) { body(&$0, at) } }
    }

    func connect() { connection { $0.connect($1) } }

    func giveToken(_ token: String? = "token") {
        let id = asked.last ?? 0
        connection { $0.tokenArrived(id, token, failure: "no", $1) }
    }

    func socketOpens() {
        let id = opened.last?.id ?? 0
        connection { $0.socketOpened(id, $1) }
    }

    func socketEnds(_ failure: TransportFailure = .closed(code: 1006)) {
        let id = opened.last?.id ?? 0
        connection { $0.socketEnded(id, failure, $1) }
    }

    /// From nothing, or from a wait that is over, to an open socket.
    func goOnline(token: String = "token") {
        connect()
        if case .waiting(let until) = machine.connection.phase { pass(until - now) }
        giveToken(token)
        socketOpens()
    }

    func hear(_ text: String) {
        let socket = machine.connection.socket
        input { $0.receiveFrame(.text(Array(text.utf8)), from: socket, $1) }
    }

    /// A frame of the room.
    func hear(_ event: String, _ payload: String, joinRef: String? = nil, ref: String? = nil) {
        func json(_ text: String?) -> String { text.map { "\"\($0)\"" } ?? "null" }
        hear("[\(json(joinRef)),\(json(ref)),\"\(topic)\",\"\(event)\",\(payload)]")
    }

    // MARK: The room

    func channel(_ body: @escaping (inout ChannelMachine, ChannelMachine.Context, inout Refs, Instant) -> Void) {
        input { machine, at in machine.withChannel(Self.room, at) { body(&$0, $1, &$2, at) } }
    }

    func openRoom(_ configure: (inout ChannelConfiguration) -> Void = { _ in }) {
        var configuration = ChannelConfiguration()
        configure(&configuration)
        machine.openChannel(Self.room, topic, configuration)
    }

    func subscribe(_ call: CallID = 100) { channel { $0.subscribe(call, $1, &$2, $3) } }

    func follow(_ subscription: SubscriptionID, table: String, filter: String? = nil) {
        let binding = ChangeRequest(schema: "public", table: table, kind: nil, filter: filter)
        channel { channel, _, _, at in channel.addSequence(subscription, binding, at) }
    }

    /// The payload of the last frame of that name that was sent.
    func last(_ event: String) -> (message: ClientMessage, payload: JSON)? {
        guard let message = sent.last(where: { $0.event == event }), case .json(let bytes) = message.body else {
            return nil
        }
        return (message, JSON(trusted: bytes[...]))
    }

    var joins: Int { sent.count { $0.event == "phx_join" } }

    /// Answers the last join with ids 1, 2, … for what it asked for, and says that row changes are live.
    func answerJoin(_ more: String = "", cursor: String? = "start.1") {
        guard let (message, payload) = last("phx_join") else { return }
        let count = payload["config"]?["postgres_changes"]?.elements.count ?? 0
        let entries = (0..<count).map { "{\"id\":\($0 + 1)}" }.joined(separator: ",")
        hear(
            "phx_reply", "{\"status\":\"ok\",\"response\":{\"postgres_changes\":[\(entries)]\(more)}}",
            joinRef: message.joinRef, ref: message.ref)
        guard count > 0 else { return }
        let cursor = cursor.map { ",\"cursor\":\"\($0)\"" } ?? ""
        hear(
            "system", "{\"extension\":\"postgres_changes\",\"status\":\"ok\",\"message\":\"Subscribed\"\(cursor)}",
            joinRef: message.joinRef)
    }

    func refuseLast(_ event: String, _ reason: String) {
        guard let message = sent.last(where: { $0.event == event }) else { return }
        hear(
            "phx_reply", "{\"status\":\"error\",\"response\":{\"reason\":\"\(reason)\"}}", joinRef: message.joinRef,
            ref: message.ref)
    }

    /// A change of row `row`, number `number`.
    func hearChange(_ row: Int, number: Int, ids: [Int] = [1]) {
        let cursor = "window." + String(number, radix: 36)
        hear(
            "postgres_changes",
            "{\"ids\":\(ids),\"data\":{\"type\":\"INSERT\",\"record\":{\"id\":\(row)},\"errors\":null},"
                + "\"cursor\":\"\(cursor)\"}")
    }

    /// Rows that reached each change sequence.
    var delivered: [(row: Int, to: [SubscriptionID])] {
        channelActions.compactMap { action in
            guard case .change(let change, let subscriptions) = action else { return nil }
            return (change.record?["id"]?.int ?? -1, subscriptions)
        }
    }

    var channelEvents: [ChannelEvent] {
        channelActions.compactMap { if case .event(let event) = $0 { event } else { nil } }
    }
}

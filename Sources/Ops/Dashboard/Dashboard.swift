import Documents
package import Gateway
import Glibc
package import HTTP
import Hub
package import Logging
package import Streams
import Synchronization
package import Wire

/// The operator's live page, as the pages themselves see it: channels of the hub's own protocol on a WebSocket of the
/// operator's port. Any Phoenix client could read it.
///
/// While nobody looks, a sample of what the loops publish is kept each second, and that is all. What is looked at is asked
/// of the loops once a second, whatever the number of pages: one question for each topic, and none while the one before is
/// not answered.
///
/// Safe from any thread: the loop with the operator's port calls it, and loops answer on theirs.
package final class Dashboard: OpsSocketHandler {
    struct State {
        var sessions: [OpsSocket.ID: DashboardSession] = [:]
        /// The samples of the last five minutes.
        var history = Ring<DashboardSample>(capacity: 300)
        var sampler = DashboardSampler()
        /// Questions that loops have not answered, by the second in which they were asked.
        var asked: [OpsTopic: Int] = [:]
        var second = 0
    }

    let state = Mutex(State())
    let access: OpsAccess
    let health: Health
    let log: RecentLog
    let gateway: Gateway
    let sources: DashboardSources
    let logger: Logger

    static let path = "/ops/websocket"
    /// Seconds after which a question is asked again although it was not answered.
    private static let patience = 10

    package init(
        access: OpsAccess, health: Health, log: RecentLog, gateway: Gateway, sources: DashboardSources, logger: Logger
    ) {
        self.access = access
        self.health = health
        self.log = log
        self.gateway = gateway
        self.sources = sources
        self.logger = logger
    }

    // MARK: Sockets

    package func refusal(of request: HTTPRequest) -> HTTPResponse? {
        guard request.path == Self.path else { return .text(404, "The operator's WebSocket is at \(Self.path)\n") }
        guard ProtocolVersion(vsn: request.query["vsn"]) != nil else { return .text(403, "vsn is 1.0.0 or 2.0.0\n") }
        return access.judge(request).refusal
    }

    package func opened(_ socket: OpsSocket, by request: HTTPRequest) {
        let version = ProtocolVersion(vsn: request.query["vsn"]) ?? .v2
        state.withLock { $0.sessions[socket.id] = DashboardSession(socket: socket, version: version) }
    }

    package func closed(_ socket: OpsSocket.ID) {
        state.withLock { $0.sessions[socket] = nil }
    }

    package func received(_ message: [UInt8], from id: OpsSocket.ID) {
        guard let session = session(id) else { return }
        let frame: ClientFrame
        do {
            frame = try ClientFrame(text: message[...], version: session.version)
        } catch {
            // As the hub does with a client's: the connection is kept.
            logger.debug("dropped a malformed frame of an operator's page: \(error)")
            return
        }
        switch frame.event {
        case "heartbeat" where frame.topic == "phoenix": session.reply(to: frame, ok: true, [:])
        case "phx_join": join(frame, session)
        case "phx_leave": leave(frame, session)
        default:
            guard session.joined[Name(frame.topic)] != nil else {
                return session.reply(to: frame, ok: false, ["reason": .text(Refusal.unmatchedTopic.reason)])
            }
            command(frame, session)
        }
    }

    func session(_ id: OpsSocket.ID) -> DashboardSession? {
        state.withLock { $0.sessions[id] }
    }

    private func join(_ frame: ClientFrame, _ session: DashboardSession) {
        guard let topic = OpsTopic(frame.topic) else {
            return session.reply(to: frame, ok: false, ["reason": .text(Refusal.unmatchedTopic.reason)])
        }
        let ref = frame.joinRef.isNull ? frame.ref : frame.joinRef
        let joined = state.withLock { state in
            state.sessions[session.socket.id]?.join(frame.topic, ref) == true ? state.sessions[session.socket.id] : nil
        }
        guard let joined else {
            let text = "a page may join \(DashboardSession.mostTopics) topics; leave one first"
            return session.reply(to: frame, ok: false, ["reason": .text(text)])
        }
        joined.reply(to: frame, ok: true, [:])
        greet(joined, topic, frame.topic)
    }

    private func leave(_ frame: ClientFrame, _ session: DashboardSession) {
        let joinRef = session.joined[Name(frame.topic)]
        session.reply(to: frame, ok: true, [:])
        guard let joinRef else { return }
        state.withLock { $0.sessions[session.socket.id]?.leave(frame.topic) }
        session.close(frame.topic, joinRef: joinRef)
    }

    // MARK: Time

    package func tick() {
        let figures = gateway.figures
        let (unix, monotonic) = Self.now()
        let cpu = ProcessFigures.cpuSeconds
        let (sample, topics, second) = state.withLock { state in
            state.second += 1
            let sample = state.sampler.sample(figures, unix: unix, monotonic: monotonic, cpu: cpu)
            state.history.append(sample)
            let topics = Set(state.sessions.values.flatMap(\.joined.keys).compactMap { OpsTopic($0.text) })
            return (sample, topics, state.second)
        }
        for topic in topics where second.isMultiple(of: topic.interval) { refresh(topic, sample) }
    }

    /// Sends everybody who looks at it what is new.
    private func refresh(_ topic: OpsTopic, _ sample: DashboardSample) {
        switch topic {
        case .overview: push("sample", topic, overview(sample))
        case .log: pushLog()
        // It does not change while the process lives.
        case .configuration: break
        case .channels, .slow, .newest, .channel, .connection, .user, .streams, .stream, .alerts: ask(topic)
        }
    }

    /// Whether the loops may be asked about a topic; false where the last question is not answered yet.
    func mayAsk(_ topic: OpsTopic) -> Bool {
        state.withLock { state in
            if let second = state.asked[topic], state.second - second < Self.patience { return false }
            state.asked[topic] = state.second
            return true
        }
    }

    func answered(_ topic: OpsTopic) {
        state.withLock { $0.asked[topic] = nil }
    }

    // MARK: Pushing

    /// Sends an event to all pages that look at the topic; its payload is written once.
    func push(_ event: StaticString, _ topic: OpsTopic, _ payload: JSONDocument) {
        let bytes = payload.bytes
        for session in state.withLock({ Array($0.sessions.values) }) {
            for name in session.joined.keys where OpsTopic(name.text) == topic {
                session.push(event, name.text, bytes)
            }
        }
    }

    private func pushLog() {
        let level = sources.logLevel()
        for session in state.withLock({ Array($0.sessions.values) }) {
            for name in session.joined.keys where OpsTopic(name.text) == .log {
                let lines = log.lines(after: session.logged)
                guard let last = lines.last else { continue }
                state.withLock { $0.sessions[session.socket.id]?.logged = last.number }
                session.push("lines", name.text, Self.json(lines, level: level).bytes)
            }
        }
    }

    static func now() -> (unix: Double, monotonic: Double) {
        (seconds(CLOCK_REALTIME), seconds(CLOCK_MONOTONIC))
    }

    private static func seconds(_ clock: clockid_t) -> Double {
        var time = timespec()
        clock_gettime(clock, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }
}

/// What the page shows and what its buttons do, as far as other rooms know it. Its closures are called on any thread.
package struct DashboardSources: Sendable {
    /// A setting as it may be shown.
    package struct Setting: Sendable {
        package let key: String
        package let value: String
        package let origin: String

        package init(key: String, value: String, origin: String) {
            self.key = key
            self.value = value
            self.origin = origin
        }
    }

    package var version = ""
    package var node = ""
    /// Gives all figures of the metrics.
    package var figures: @Sendable () -> [Figure] = { [] }
    /// Gives the configuration that is in force.
    package var settings: @Sendable () -> [Setting] = { [] }
    package var logLevel: @Sendable () -> String = { "" }
    /// False where there is no such level.
    package var setLogLevel: @Sendable (String) -> Bool = { _ in false }
    /// Ends the connections of a user on all hubs of a cluster: how many there were, and which hubs did not answer.
    package var disconnectUser:
        @Sendable (_ user: Name, _ reply: @escaping @Sendable (_ count: Int, _ silent: [String]) -> Void) -> Void = {
            $1(0, [])
        }
    /// Nil where the hub serves no streams.
    package var streams: (any StreamService & StreamInspector)?
    /// Lists the newest alerts of a user or a message, or says why there are none to list. Nil where the hub sends no pushes.
    package var alerts:
        (
            @Sendable (
                _ subject: AlertSubject, _ limit: Int,
                _ reply: @escaping @Sendable (_ alerts: [ListedAlert], _ problem: String?) -> Void
            ) -> Void
        )?
    /// Nil where the hub is alone by its settings.
    package var cluster: (@Sendable () -> ClusterOverview)?

    package init() {}
}

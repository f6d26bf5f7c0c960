import Documents
package import Gateway
import Glibc
package import HTTP
import Hub
package import Logging
package import Streams
import Synchronization
package import Wire

/// The operator's live page, in the form that pages use: channels of the hub's own protocol on a WebSocket of the
/// operator's port. Any Phoenix client could read it.
///
/// Without pages, the hub only keeps one sample of the loops' figures per second. Topics that pages have joined are
/// requested from the loops once a second, regardless of the number of pages: one request for each topic, and none
/// while the previous one is unanswered.
///
/// Safe from any thread: the loop of the operator's port calls it, and loops answer on their own threads.
package final class Dashboard: OpsSocketHandler {
    struct State {
        var sessions: [OpsSocket.ID: DashboardSession] = [:]
        /// The samples of the last five minutes.
        var history = Ring<DashboardSample>(capacity: 300)
        var sampler = DashboardSampler()
        /// Unanswered requests, with the second in which they were made.
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
    /// Seconds after which an unanswered request is repeated.
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
        return access.judgePage(request).refusal
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
            // As for clients of the hub, the connection stays open.
            logger.debug("dropped a malformed frame of an operator's page: \(error)")
            return
        }
        switch frame.event {
        case "heartbeat" where frame.topic == "phoenix": session.reply(to: frame, ok: true, [:])
        case "phx_join": joinTopic(frame, session)
        case "phx_leave": leaveTopic(frame, session)
        default:
            guard session.joined[Name(frame.topic)] != nil else {
                return session.reply(to: frame, ok: false, ["reason": .text(Refusal.unmatchedTopic.reason)])
            }
            executeCommand(frame, session)
        }
    }

    func session(_ id: OpsSocket.ID) -> DashboardSession? {
        state.withLock { $0.sessions[id] }
    }

    private func joinTopic(_ frame: ClientFrame, _ session: DashboardSession) {
        guard let topic = OpsTopic(frame.topic) else {
            return session.reply(to: frame, ok: false, ["reason": .text(Refusal.unmatchedTopic.reason)])
        }
        let ref = frame.joinRef.isNull ? frame.ref : frame.joinRef
        let joined = state.withLock { state in
            state.sessions[session.socket.id]?.addTopic(frame.topic, ref) == true
                ? state.sessions[session.socket.id] : nil
        }
        guard let joined else {
            let text = "a page may join \(DashboardSession.mostTopics) topics; leave one first"
            return session.reply(to: frame, ok: false, ["reason": .text(text)])
        }
        joined.reply(to: frame, ok: true, [:])
        sendFirstState(joined, topic, frame.topic)
    }

    private func leaveTopic(_ frame: ClientFrame, _ session: DashboardSession) {
        let joinRef = session.joined[Name(frame.topic)]
        session.reply(to: frame, ok: true, [:])
        guard let joinRef else { return }
        state.withLock { $0.sessions[session.socket.id]?.removeTopic(frame.topic) }
        session.sendClose(frame.topic, joinRef: joinRef)
    }

    // MARK: Time

    package func tick() {
        let figures = gateway.figures
        let (unix, monotonic) = Self.now()
        let cpu = ProcessFigures.cpuSeconds
        let (sample, topics, second) = state.withLock { state in
            state.second += 1
            let sample = state.sampler.takeSample(figures, unix: unix, monotonic: monotonic, cpu: cpu)
            state.history.append(sample)
            let topics = Set(state.sessions.values.flatMap(\.joined.keys).compactMap { OpsTopic($0.text) })
            return (sample, topics, state.second)
        }
        for topic in topics where second.isMultiple(of: topic.interval) { refreshTopic(topic, sample) }
    }

    /// Sends the news of a topic to all pages that have joined it.
    private func refreshTopic(_ topic: OpsTopic, _ sample: DashboardSample) {
        switch topic {
        case .overview: pushEvent("sample", topic, overviewDocument(sample))
        case .log: pushLog()
        // The configuration in force does not change while the process runs.
        case .configuration: break
        case .channels, .slow, .newest, .channel, .connection, .user, .streams, .stream, .alerts: requestState(topic)
        }
    }

    /// Whether the loops may be asked about a topic; false while the last request is unanswered.
    func mayAsk(_ topic: OpsTopic) -> Bool {
        state.withLock { state in
            if let second = state.asked[topic], state.second - second < Self.patience { return false }
            state.asked[topic] = state.second
            return true
        }
    }

    func noteAnswer(_ topic: OpsTopic) {
        state.withLock { $0.asked[topic] = nil }
    }

    // MARK: Pushing

    /// Sends an event to all pages that have joined the topic; the payload is encoded once.
    func pushEvent(_ event: StaticString, _ topic: OpsTopic, _ payload: JSONDocument) {
        let bytes = payload.bytes
        for session in state.withLock({ Array($0.sessions.values) }) {
            for name in session.joined.keys where OpsTopic(name.text) == topic {
                session.pushEvent(event, name.text, bytes)
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
                session.pushEvent("lines", name.text, Self.logDocument(lines, level: level).bytes)
            }
        }
    }

    static func now() -> (unix: Double, monotonic: Double) {
        (readClock(CLOCK_REALTIME), readClock(CLOCK_MONOTONIC))
    }

    private static func readClock(_ clock: clockid_t) -> Double {
        var time = timespec()
        clock_gettime(clock, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }
}

/// Data and actions of the page that other rooms provide. The closures are called on any thread.
package struct DashboardSources: Sendable {
    /// A setting in printable form.
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
    /// Returns all figures of the metrics.
    package var figures: @Sendable () -> [Figure] = { [] }
    /// Returns the configuration in force.
    package var settings: @Sendable () -> [Setting] = { [] }
    package var logLevel: @Sendable () -> String = { "" }
    /// Returns false for an unknown level.
    package var setLogLevel: @Sendable (String) -> Bool = { _ in false }
    /// Ends a user's connections on all hubs of a cluster; replies with their number and the hubs that did not answer.
    package var disconnectUser:
        @Sendable (_ user: Name, _ reply: @escaping @Sendable (_ count: Int, _ silent: [String]) -> Void) -> Void = {
            $1(0, [])
        }
    /// Nil if the hub serves no streams.
    package var streams: (any StreamService & StreamInspector)?
    /// Lists the newest alerts of a user or a message, or replies with the reason why it cannot. Nil if the hub sends
    /// no pushes.
    package var alerts:
        (
            @Sendable (
                _ subject: AlertSubject, _ limit: Int,
                _ reply: @escaping @Sendable (_ alerts: [ListedAlert], _ problem: String?) -> Void
            ) -> Void
        )?
    /// Nil if the hub is configured to work alone.
    package var cluster: (@Sendable () -> ClusterOverview)?

    package init() {}
}

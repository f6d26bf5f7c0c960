import CWebSockets
import Glibc
import HTTP
import Hub
import Logging
import Wire
import Workers

/// One thread, one libuv loop, one libwebsockets context, one hub: everything that happens to a connection happens
/// here. This type runs the loop and routes: input from sockets, timers and other threads goes to the hub or to the
/// responsible part of the loop, and the hub's actions to the parts that execute them.
///
/// Confined to its thread from `run` on; other threads reach it only through `inbox`. A turn of the loop reads the
/// sockets and the inbox, lets the hub decide, and records what to send; at the end of the turn (`uv_check`), every
/// socket gets one write.
final class EventLoop {
    let index: Int
    let configuration: GatewayConfiguration
    /// The current rules.
    private(set) var rules: GatewayRules
    /// The services that the loop uses.
    let services: GatewayServices
    /// State shared with other loops and other rooms.
    private let shared: HubShared
    /// State shared with the gateway's other loops.
    let limits: SharedLimits
    let logger: Logger
    let inbox: LoopInbox
    /// The inboxes of the gateway's other loops.
    let siblings: [LoopInbox]
    let libuv: LibuvLoop
    let hub: Hub
    var delivery: Delivery

    // From a connection to a WebSocket.
    private(set) var listeners: [Listener] = []
    private let certificates: CertificateRefresher?
    /// Nil if the hub terminates no TLS.
    private(set) var tunnels: TLSTunnels?
    private(set) var lws = LWSContext()
    var admission: Admission
    var upgrades = PendingUpgrades()
    lazy var http = HTTPServer(loop: self, router: router)
    lazy var answers = StreamingAnswers(loop: self)
    lazy var router = RequestRouter(loop: self)
    lazy var operators = OpsSockets(loop: self)

    // WebSockets.
    var slots = SlotAllocator()
    var countedAddresses = CountedAddresses()
    /// The trace contexts of clients' upgrades, if they have one.
    var traces: [Slot: TraceContext] = [:]
    /// The tunnels of WebSockets, which `Socket` points to.
    var openTunnels: [Slot: TLSTunnel] = [:]
    var partial: PartialMessages
    lazy var pauses = ReadPauses(libuv)
    lazy var changes = ChangeIntake(loop: self)
    lazy var recoveries = RecoveryDelivery(loop: self)
    lazy var pings = AcknowledgementPings(loop: self)

    // Turns.
    private var relays: [Relay] = []
    private var executing: [Action] = []
    var postponement = FlushPostponement()
    private(set) var second: Int32 = 0
    private lazy var ticks = LoopTimer(libuv) { [unowned self] in tick() }
    private lazy var hubTimer = LoopTimer(libuv) { [unowned self] in wakeHub() }
    /// When to wake the hub, in monotonic milliseconds; nil while no timer runs.
    private var wakesHubAt: Int64?

    // Figures and logs.
    let gauges: LoopGauges
    var counters = LoopCounters()
    var endings: EndingLog
    var denials = RefusalLog()
    /// In seconds of the loop; one warning a minute is enough.
    private var silentAboutStallsUntil: Int32 = 0

    /// - Parameter index: the loop's place among the gateway's loops.
    init(_ index: Int, of gateway: Gateway, services: GatewayServices) {
        self.index = index
        configuration = gateway.configuration
        rules = configuration.rules
        self.services = services
        var shared = gateway.shared
        shared.streams = services.streams
        shared.hasPeers = services.peers != nil
        self.shared = shared
        limits = gateway.limits
        logger = gateway.logger
        inbox = gateway.inboxes[index]
        siblings = gateway.inboxes.enumerated().filter { $0.offset != index }.map(\.element)
        libuv = inbox.libuv
        gauges = gateway.gauges[index]
        certificates = gateway.certificates
        hub = Hub(
            loop: index, limits: rules.limits, verifier: services.verifier, random: SystemRandomNumberGenerator(),
            presence: rules.presence, typing: rules.typing, shared: shared, userLimiter: limits.connections,
            filter: inbox.channels)
        delivery = Delivery(cap: rules.pendingBytesPerSocket, readers: limits.readers)
        admission = Admission(
            rules, verifier: services.verifier, connections: limits.connections, failing: limits.failing,
            requiresFeed: configuration.requiresFeed && services.feed != nil)
        partial = PartialMessages(limits.unfinished)
        endings = EndingLog(loops: configuration.loops)
        libuv.attach(self)
        ticks.start(after: 1000, every: 1000)
        hub.hearOthers = { [unowned self] in
            for relay in inbox.takeRelays() { hub.applyRelay(relay) }
        }
        hub.askForRoom(
            hasRoom: { [unowned self] in delivery.hasRoom($0, for: 0) },
            awaitRoom: { [unowned self] in delivery.awaitRoom($0) })
        lws = LWSContext(on: libuv, owner: self)
        tunnels = certificates.map { TLSTunnels(on: libuv, owner: self, presenting: $0.certificate) }
    }

    static func of(_ data: UnsafeMutableRawPointer?) -> EventLoop? {
        data.map { Unmanaged<EventLoop>.fromOpaque($0).takeUnretainedValue() }
    }

    /// Starts to accept connections. Called before `run`, on the thread that created the loop.
    func listen() throws(GatewayError) {
        listeners.append(try Listener(host: configuration.host, port: configuration.port, .clients, loop: self))
        guard index == 0 else { return }
        if let path = configuration.socket {
            listeners.append(try Listener(path: path, mode: configuration.socketMode, loop: self))
        }
        if let port = configuration.opsPort {
            listeners.append(try Listener(host: configuration.opsHost, port: port, .operators, loop: self))
            operators.begin()
        }
    }

    /// Runs the loop until it is stopped; the calling thread becomes the loop's.
    func run() {
        gauges.turns()
        preferShortSlices()
        // Created here, because a ring belongs to the thread that creates it.
        if configuration.usesIOUring {
            delivery.ring = SendRing()
            if delivery.ring == nil {
                let reason = String(cString: strerror(errno))
                logger.info("There is no io_uring here (\(reason)): every socket takes a system call of its own")
            }
        }
        counters.loopBegins()
        libuv.run()
        // The last output is in the tunnels; this passes it on to the clients.
        if tunnels != nil { libuv.runOnce() }
    }

    func now() -> HubTime {
        var wall = timespec()
        clock_gettime(CLOCK_REALTIME, &wall)
        return HubTime(
            monotonic: Self.milliseconds, unix: Int64(wall.tv_sec) * 1000 + Int64(wall.tv_nsec) / 1_000_000)
    }

    /// Monotonic milliseconds.
    static var milliseconds: Int64 { Int64(uv_hrtime() / 1_000_000) }

    // MARK: The hub's actions

    func execute() {
        defer { awaitHub() }
        if hub.hasFailures { logFailures() }
        guard !hub.actions.isEmpty else { return offerLeases() }
        // Swapping the two lists saves reallocating them.
        swap(&executing, &hub.actions)
        for action in executing {
            switch action {
            case .send(let frame, let slot, let kind): delivery.send(frame, to: slot, kind)
            case .fanOut(let frame, let audience, let except, let kind):
                delivery.fanOut(frame, to: audience, except: except, kind)
            case .close(let slot, let code, let reason): beginClosing(slot, code, reason: reason)
            case .begin(let slot, let frame): answers.begin(slot, with: frame)
            case .refuse(let slot, let refusal):
                hub.countRefusal(refusal)
                answers.refuse(slot, with: .error(UInt32(refusal.status), refusal.message))
            case .relay(let relay): if !siblings.isEmpty || services.peers != nil { relays.append(relay) }
            case .subscribe(let id, let subscription): services.feed?.subscribe(id, subscription)
            case .unsubscribe(let id): services.feed?.unsubscribe(id)
            case .admit(let id, let claims): services.feed?.admitClaims(claims, to: id)
            case .withdraw(let id, let claims): services.feed?.withdrawClaims(claims, from: id)
            case .recover(let id, let question): services.feed?.startRecovery(id, question)
            case .abandon(let id): services.feed?.abandonRecovery(id)
            case .ping(let places):
                pings.send(to: places)
                if places.contains(where: { $0.loop != index }) {
                    for sibling in siblings { sibling.post(.ping(places)) }
                }
            case .authorize(let id, let question): ask(question) { .authorization(id, $0) }
            case .store(let id, let message): store(message) { [inbox] row in id.map { inbox.post(.stored($0, row)) } }
            case .stream(let id, let name, let request):
                services.streams?.submitRequest(request, on: name) { [inbox] answer in
                    if let id { inbox.post(.streamAnswered(id, answer)) }
                }
            }
        }
        executing.removeAll(keepingCapacity: true)
        offerLeases()
    }

    /// Asks the authority on private channels; the answer comes back to this loop.
    func ask(_ question: AuthorizationQuestion, answer: @escaping @Sendable (AuthorizationOutcome) -> LoopTask) {
        guard let authority = services.authority else { return inbox.post(answer(.unavailable)) }
        authority.decideQuestion(question) { [inbox] in inbox.post(answer($0)) }
    }

    /// Stores a broadcast.
    func store(_ message: PersistedMessage, answer: @escaping @Sendable (String?) -> Void) {
        guard let messages = services.messages else { return answer(nil) }
        messages.storeMessage(message, answer: answer)
    }

    /// Offers presences that ended here to other hubs. The news about them must be under way first.
    private func offerLeases() {
        guard hub.hasOffers else { return }
        postRelays()
        hub.offerLeases()
    }

    private func postRelays() {
        guard !relays.isEmpty else { return }
        for sibling in siblings { sibling.post(relays) }
        services.peers?.postRelays(relays, from: index)
        relays.removeAll(keepingCapacity: true)
    }

    // MARK: Turns

    /// Ends a turn. libuv runs timers before it waits for events, so a timer's action must end the turn itself;
    /// otherwise its output would wait, too.
    func endTurn() {
        defer { if let took = counters.turnEnds() { warn(ofStall: took) } }
        // Work left by the last turn starts a turn without any event.
        if changes.isSliced { counters.turnBegins() }
        postRelays()
        if delivery.hasWork, !postponement.isDue() { delivery.flush() }
        if !changes.isEmpty {
            changes.pump()
            if delivery.hasWork { delivery.flush() }
        }
        resumeRelieved()
        sendResyncs()
        answers.settle()
        changes.turnEnds()
        tunnels?.beginTurn()
        http.beginTurn()
        // While there are slices to send or requests to read, the loop must not wait for events.
        libuv.keepsTurning(delivery.hasWork || changes.isSliced || http.isBehind)
    }

    /// Continues output for sockets that have room again.
    private func resumeRelieved() {
        while let slot = delivery.takeRelieved() {
            if delivery.sockets[Int(slot)].isAnswer {
                answers.hasRoom(slot)
            } else {
                recoveries.resume(slot)
                hub.roomBecameFree(slot)
                execute()
            }
            if delivery.hasWork { delivery.flush() }
        }
    }

    /// Called right before libuv waits: ends a turn that `uv_check` does not cover. In its idle phase, lws handles
    /// bytes it has already read, such as frames that came in one packet with their upgrade.
    func endEarlyTurn() {
        if counters.isInTurn { endTurn() }
    }

    /// Sends sockets that have caught up the states whose steps were left out.
    private func sendResyncs() {
        while let resync = delivery.takeResync() {
            hub.showState(resync.state, to: resync.slot)
            execute()
            if delivery.hasWork { delivery.flush() }
        }
    }

    private func warn(ofStall nanoseconds: UInt64) {
        guard second >= silentAboutStallsUntil else { return }
        silentAboutStallsUntil = second + 60
        logger.warning(
            "Event loop \(index) was busy for \(nanoseconds / 1_000_000) ms and served nobody meanwhile",
            metadata: ["loop": "\(index)", "stalls": "\(counters.stalls)"])
    }

    /// Applies new rules, on the loop's own thread.
    func adopt(_ rules: GatewayRules) {
        self.rules = rules
        hub.applySettings(rules.limits, rules.presence, rules.typing)
        delivery.adopt(cap: rules.pendingBytesPerSocket)
        admission.adopt(rules)
        router.adopt(rules)
    }

    // MARK: Timers

    /// Sets the timer for the hub's next due moment (ends of windows, typing that falls silent, news waiting to be sent
    /// together), if that moment is earlier than the timer's.
    private func awaitHub() {
        guard let due = hub.nextDue else { return }
        if let wakesHubAt, wakesHubAt <= due { return }
        wakesHubAt = due
        hubTimer.start(afterNow: UInt64(max(0, due - Self.milliseconds)))
    }

    private func wakeHub() {
        counters.turnBegins()
        wakesHubAt = nil
        hub.wake(at: now())
        execute()
        endTurn()
    }

    /// Called once a second.
    private func tick() {
        counters.turnBegins()
        second += 1
        hub.performTick(at: now())
        execute()
        http.tick()
        router.streams.tick()
        tunnels?.tick()
        endSlowMessages()
        if index == 0 { limits.failing.forget() }
        endings.secondGoesBy(loop: index, logger)
        denials.secondGoesBy(second, logger)
        tickSockets()
        pings.beginSecond()
        recoveries.endPatience()
        shared.recovery.removeExpired(at: now())
        lookAfterCertificate()
        gauges.publish(self)
        delivery.tracer.forget(before: second)
        endTurn()
    }

    /// Checks the certificate on one loop, which tells the others.
    private func lookAfterCertificate() {
        guard index == 0, second % CertificateRefresher.interval == 0, let certificate = certificates?.look() else {
            return
        }
        tunnels?.present(certificate)
        for sibling in siblings { sibling.post(.present(certificate)) }
    }
}

/// Postpones the write at the end of a turn while the socket read last has more input: a busy publisher's burst arrives
/// in pieces of the small receive buffer, and should leave in one write per subscriber.
struct FlushPostponement {
    /// The last socket read in this turn; -1 for none.
    var lastRead: Int32 = -1
    private var postponed = 0

    private static let most = 64

    /// Whether to postpone the write of the ending turn.
    mutating func isDue() -> Bool {
        defer { lastRead = -1 }
        guard lastRead >= 0, postponed < Self.most, roost_unread(lastRead) > 0 else {
            postponed = 0
            return false
        }
        postponed += 1
        return true
    }
}

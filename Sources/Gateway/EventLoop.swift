import CWebSockets
import Glibc
import HTTP
import Hub
import Logging
import Wire

/// One thread, one libuv loop, one libwebsockets context, one hub: everything that happens to a connection happens here.
///
/// Confined to its thread from `run` on; other threads reach it through `inbox` alone. A turn of the loop is: take what
/// the sockets and the inbox have, let the hub decide, note what is to be sent; at the turn's end (`uv_check`) give every
/// socket one write.
final class EventLoop {
    let index: Int
    let configuration: GatewayConfiguration
    /// What holds now.
    var rules: GatewayRules
    let hub: Hub
    let inbox: LoopInbox
    var delivery: Delivery
    var door: Door
    var broadcastAPI: BroadcastAPI
    let handler: (any HTTPHandler)?
    let opsHandler: (any HTTPHandler)?
    let opsSocketHandler: (any OpsSocketHandler)?
    let logger: Logger
    /// The other loops of the gateway, known once all are made.
    var siblings: [LoopInbox] = []
    let loop: UnsafeMutablePointer<uv_loop_t>
    private let check: UnsafeMutablePointer<uv_check_t>
    private let prepare: UnsafeMutablePointer<uv_prepare_t>
    private let idle: UnsafeMutablePointer<uv_idle_t>
    private let timer: UnsafeMutablePointer<uv_timer_t>
    var listeners: [Listener] = []
    /// The connections without TLS are its.
    private(set) var plain: OpaquePointer?
    /// Those with TLS; nil if the hub has no certificate.
    private(set) var encrypted: OpaquePointer?
    /// What `presented` points to lives as long as this.
    var certificate: Certificate?
    /// For OpenSSL, which looks here in every handshake.
    let presented: UnsafeMutablePointer<OpaquePointer?>
    /// Those that lws reads, because they come by TLS.
    var exchanges: [OpaquePointer: TLSExchange] = [:]
    lazy var http = HTTPServer(loop: self)
    var nextExchange = 0
    /// By exchange: messages that wait for the policies' answer.
    var publications: [Int: Publication] = [:]
    /// Shared by the loops, these two.
    let failing: FailingAddresses
    let unfinished: UnfinishedBytes
    /// What the door decided, until lws says what became of it.
    var upgrades: [OpaquePointer: PendingUpgrade] = [:]
    /// Whom lws is about to make a connection of.
    var handedOver: PendingUpgrade?
    /// The sockets of all loops, as far as they are limited.
    let seats: SocketSeats
    /// By slot, where addresses are counted.
    var addresses: [PeerAddress?] = []
    /// By slot.
    var births: [Birth] = []
    var ops = OpsSockets()
    var pauses = Pauses()
    lazy var pauseTimer = makePauseTimer()
    lazy var dutyTimer = makeDutyTimer()
    lazy var proofTimer = makeProofTimer()
    /// Sockets that are yet to be asked for a proof in this second, and how many at a time.
    var proofsDue: [Slot] = []
    var proofsInStep = 0
    /// When the hub is to be woken, by the loop's clock; nil while no timer runs.
    var wokenAt: Int64?
    private var freeSlots: [Slot] = []
    private var slotCount: Slot = 0
    /// Messages of which pieces are in.
    var partial: [Slot: UnfinishedMessage] = [:]
    private var relays: [Relay] = []
    private var executing: [Action] = []
    /// The socket that was read in this turn, the last one if there were several; -1 for none.
    var lastRead: Int32 = -1
    private var postponed = 0
    var changes = ChangeQueue()
    var parked = ParkedSteps()
    /// Of sockets that are brought what they missed, while some of it is not proven.
    var paces: [Slot: RecoveryPace] = [:]
    /// No socket is let in any more.
    var isDraining = false
    private(set) var second: Int32 = 0
    let gauges: LoopGauges
    var counters = LoopCounters()
    var endings: EndingLog
    /// In seconds of the loop; one warning a minute is enough.
    private var silentAboutStallsUntil: Int32 = 0

    init(
        index: Int, configuration: GatewayConfiguration, seats: SocketSeats, failing: FailingAddresses,
        unfinished: UnfinishedBytes, readers: ChangeReaders,
        verifier: any TokenVerifier, handler: (any HTTPHandler)?, opsHandler: (any HTTPHandler)?,
        opsSocketHandler: (any OpsSocketHandler)?, logger: Logger
    ) {
        self.index = index
        self.configuration = configuration
        rules = configuration.rules
        self.seats = seats
        self.failing = failing
        self.unfinished = unfinished
        self.handler = handler
        self.opsHandler = opsHandler
        self.opsSocketHandler = opsSocketHandler
        self.logger = logger
        hub = Hub(
            loop: index, limits: rules.limits, verifier: verifier, random: SystemRandomNumberGenerator(),
            book: configuration.book, history: configuration.history, ledger: seats,
            presence: rules.presence, typing: rules.typing, presences: configuration.presences,
            presenceLog: configuration.presenceLog, users: configuration.users, devices: configuration.devices,
            typingBoard: configuration.typingBoard, summaryJoins: configuration.summaryJoins)
        delivery = Delivery(cap: rules.pendingBytesPerSocket, readers: readers)
        door = Door(verifier: verifier, origins: rules.origins)
        broadcastAPI = BroadcastAPI(verifier: verifier, limits: rules.limits)
        loop = .allocate(capacity: 1)
        check = .allocate(capacity: 1)
        prepare = .allocate(capacity: 1)
        idle = .allocate(capacity: 1)
        timer = .allocate(capacity: 1)
        presented = .allocate(capacity: 1)
        presented.initialize(to: nil)
        gauges = LoopGauges()
        endings = EndingLog(loops: configuration.loops)
        uv_loop_init(loop)
        let wake = UnsafeMutablePointer<uv_async_t>.allocate(capacity: 1)
        inbox = LoopInbox(handle: wake)
        let me = Unmanaged.passUnretained(self).toOpaque()
        uv_async_init(loop, wake) { handle in
            EventLoop.of(handle?.pointee.data)?.drainInbox()
        }
        wake.pointee.data = me
        uv_check_init(loop, check)
        check.pointee.data = me
        uv_check_start(check) { handle in
            EventLoop.of(handle?.pointee.data)?.endTurn()
        }
        uv_prepare_init(loop, prepare)
        prepare.pointee.data = me
        uv_prepare_start(prepare) { handle in
            EventLoop.of(handle?.pointee.data)?.endEarlyTurn()
        }
        uv_idle_init(loop, idle)
        uv_timer_init(loop, timer)
        timer.pointee.data = me
        uv_timer_start(timer, { handle in EventLoop.of(handle?.pointee.data)?.tick() }, 1000, 1000)
        hub.hearOthers = { [unowned self] in
            for relay in inbox.takeRelays() { hub.apply(relay) }
        }
        let certificate = configuration.certificates?.certificate
        guard let context = roost_context_create(loop, me, certificate == nil ? 0 : 1) else {
            preconditionFailure("libwebsockets made no context; install libwebsockets-evlib-uv")
        }
        plain = roost_vhost_create(context, "roost", lwsCallback, 0)
        if let certificate {
            encrypted = roost_vhost_create(context, "roost-tls", lwsCallback, 1)
            precondition(encrypted != nil, "libwebsockets has no TLS here; install Debian's package of it")
            present(certificate)
        }
    }

    static func of(_ data: UnsafeMutableRawPointer?) -> EventLoop? {
        data.map { Unmanaged<EventLoop>.fromOpaque($0).takeUnretainedValue() }
    }

    /// Turns until `stop`; the calling thread becomes the loop's.
    func run() {
        roost_name_loop(Int32(index))
        gauges.beats()
        // Here, because a ring belongs to the thread that makes it.
        if configuration.usesIOUring {
            delivery.ring = SendRing()
            if delivery.ring == nil {
                let reason = String(cString: strerror(errno))
                logger.info("there is no io_uring here (\(reason)): every socket takes a system call of its own")
            }
        }
        counters.loopBegins()
        uv_run(loop, UV_RUN_DEFAULT)
    }

    func now() -> HubTime {
        var wall = timespec()
        clock_gettime(CLOCK_REALTIME, &wall)
        return HubTime(
            monotonic: Int64(uv_hrtime() / 1_000_000),
            unix: Int64(wall.tv_sec) * 1000 + Int64(wall.tv_nsec) / 1_000_000)
    }

    // MARK: The hub's actions

    func execute() {
        defer { awaitDuties() }
        guard !hub.actions.isEmpty else { return offerLeases() }
        // The two lists change places, so that neither is allocated anew.
        swap(&executing, &hub.actions)
        for action in executing {
            switch action {
            case .send(let frame, let slot, let kind): delivery.send(frame, to: slot, kind)
            case .fanOut(let frame, let audience, let except, let kind):
                delivery.fanOut(frame, to: audience, except: except, kind)
            case .close(let slot, let code, let reason): beginClosing(slot, code, reason: reason)
            case .relay(let relay): if !siblings.isEmpty { relays.append(relay) }
            case .subscribe(let id, let subscription): feed?.subscribe(id, subscription)
            case .unsubscribe(let id): feed?.unsubscribe(id)
            case .admit(let id, let claims): feed?.admit(claims, to: id)
            case .withdraw(let id, let claims): feed?.withdraw(claims, from: id)
            case .recover(let id, let question): feed?.recover(id, question)
            case .abandon(let id): feed?.abandon(id)
            case .askForProof(let places):
                askForProof(places)
                if places.contains(where: { $0.loop != index }) {
                    for sibling in siblings { sibling.post(.askForProof(places)) }
                }
            case .authorize(let id, let question): ask(question) { .authorization(id, $0) }
            }
        }
        executing.removeAll(keepingCapacity: true)
        offerLeases()
    }

    var feed: (any ChangeSource)?
    /// Without one, nobody may enter a private channel.
    var authority: (any ChannelAuthority)?

    // MARK: Turns

    /// libuv runs timers before it waits for events, so what runs by a timer ends its turn itself, or what it has to say
    /// waits with it.
    func endTurn() {
        defer { if let took = counters.turnEnds() { warn(ofStall: took) } }
        postRelays()
        if delivery.hasWork, !waitsForMore() { delivery.flush() }
        if !changes.isEmpty {
            pumpChanges()
            if delivery.hasWork { delivery.flush() }
        }
        unpark()
        payOwedStates()
        // An idle handle keeps the loop from waiting for events while slices are left to send.
        if delivery.hasWork {
            uv_idle_start(idle) { _ in }
        } else {
            uv_idle_stop(idle)
        }
    }

    /// Right before libuv waits: ends a turn of which `uv_check` does not know. In its idle phase lws handles what it has
    /// read already, such as frames that came with their upgrade in one packet.
    private func endEarlyTurn() {
        if counters.isInTurn { endTurn() }
    }

    private func warn(ofStall nanoseconds: UInt64) {
        guard second >= silentAboutStallsUntil else { return }
        silentAboutStallsUntil = second + 60
        logger.warning(
            "event loop \(index) was busy for \(nanoseconds / 1_000_000) ms, in which nobody on it was served",
            metadata: ["loop": "\(index)", "stalls": "\(counters.stalls)"])
    }

    func postRelays() {
        guard !relays.isEmpty else { return }
        for sibling in siblings { sibling.post(.relay(relays)) }
        relays.removeAll(keepingCapacity: true)
    }

    /// Whether the flush is put off because the socket that was read last has more: what a busy publisher sent at once
    /// arrives in pieces of the small receive buffer, and is to leave in one write per subscriber.
    private func waitsForMore() -> Bool {
        defer { lastRead = -1 }
        guard lastRead >= 0, postponed < Self.mostPostponements, roost_unread(lastRead) > 0 else {
            postponed = 0
            return false
        }
        postponed += 1
        return true
    }

    private static let mostPostponements = 64

    private func drainInbox() {
        counters.turnBegins()
        hub.advance(to: now())
        for task in inbox.takeAll() {
            switch task {
            case .relay(let relays): for relay in relays { hub.apply(relay) }
            case .publish(let message, let key): hub.publish(message, to: key)
            case .subscription(let id, let outcome): hub.changeSubscription(id, is: outcome)
            case .feedIsReady(let isReady): hub.feed(isReady: isReady)
            case .authorization(let id, let outcome): hub.authorization(id, is: outcome)
            case .publicationRight(let exchange, let topic, let outcome): decide(exchange, topic: topic, outcome)
            case .changes(let batch):
                changes.append(batch)
                pumpChanges()
            case .askForProof(let places): askForProof(places)
            case .show(let summary): hub.show(summary)
            case .adopt(let rules): adopt(rules)
            case .respond(let exchange, let response): httpReplied(exchange, response)
            case .tellOperator(let socket, let frame): tellOperator(socket, frame)
            case .inspect(let question): question(self)
            case .take(let connection): takePlain(connection)
            case .present(let certificate): present(certificate)
            case .stopAccepting: stopAccepting()
            case .closeSome(let rounds): closeSome(rounds: rounds)
            case .cutOff: for slot in delivery.sockets.indices { delivery.cutOff(Slot(slot)) }
            case .stop:
                endings.secondGoesBy(loop: index, logger)
                uv_stop(loop)
            }
            execute()
        }
    }

    lazy var holdTimer: UnsafeMutablePointer<uv_timer_t> = {
        let timer = UnsafeMutablePointer<uv_timer_t>.allocate(capacity: 1)
        uv_timer_init(loop, timer)
        return timer
    }()

    private func tick() {
        counters.turnBegins()
        second += 1
        hub.tick(at: now())
        execute()
        http.tick()
        endSlowBodies()
        endSlowMessages()
        if index == 0 { failing.forget() }
        endings.secondGoesBy(loop: index, logger)
        for slot in delivery.sockets.indices {
            let socket = delivery.sockets[slot]
            guard socket.isOpen else { continue }
            if socket.isClosing {
                delivery.closingGoesOn(Slot(slot))
                continue
            }
            let silence = second - socket.lastHeard
            if silence >= rules.idleTimeout {
                beginClosing(Slot(slot), .normal, reason: "idle timeout")
            } else if silence >= rules.pingAfter, !socket.wasPinged {
                delivery.wasPinged(Slot(slot))
                delivery.send(.ping, to: Slot(slot))
            }
        }
        askForProofs()
        lookAfterPaces()
        configuration.book.forget(at: now())
        lookAfterCertificate()
        gauges.publish(self)
        delivery.tracer.forget(before: second)
        endTurn()
    }

    // MARK: Sockets

    func opened(_ wsi: OpaquePointer, _ admission: Door.Admission) -> Slot {
        let slot: Slot
        if let free = freeSlots.popLast() {
            slot = free
        } else {
            slot = slotCount
            slotCount += 1
        }
        seat(slot, admission)
        delivery.open(slot, wsi: wsi, second: second, peer: admission.peer)
        counters.accepted += 1
        noteBirth(of: slot)
        hub.connect(
            slot, version: admission.version, claims: admission.claims, isCounted: admission.countedUser != nil,
            isPage: admission.isPage)
        gauges.connections.store(hub.connectionCount, ordering: .relaxed)
        return slot
    }

    func closed(_ slot: Slot) {
        _ = takePartial(slot)
        lastRead = -1
        pauses.forget(slot)
        delivery.tracer.forget(slot)
        counters.ended(with: delivery.sockets[Int(slot)].endCode)
        logEnd(of: slot)
        // What a browser says that unloads a page (WHATWG WebSockets, "make disappear").
        let isUnloaded = delivery.sockets[Int(slot)].endCode == 1001 && delivery.reasons[slot] == nil
        delivery.close(slot)
        forgetParked(slot)
        hub.disconnect(slot, at: now(), isUnloaded: isUnloaded)
        leaveSeat(slot)
        gauges.connections.store(hub.connectionCount, ordering: .relaxed)
        freeSlots.append(slot)
        execute()
    }
}

import DequeModule
import Glibc

/// Many client sockets on the calling thread: connects and joins them, keeps them alive, hands on what they receive.
final class Fleet<Behaviour: FleetBehaviour> {
    let behaviour: Behaviour
    let plan: FleetPlan
    let poller: Poller
    var sockets: ContiguousArray<ClientSocket>
    var troubles = Troubles()
    /// Sockets that have joined.
    private(set) var readyCount = 0
    /// Sockets that are connected, whatever they wait for.
    private(set) var openCount = 0
    /// How many sockets the server has ended that had joined.
    private(set) var droppedCount = 0
    /// How many could not connect or join.
    private(set) var refusedCount = 0
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 18, alignment: 16)
    private let dialer: Dialer
    private let secure: SecureContext?
    private var queue: Deque<Int> = []
    private var underWay = 0
    private var limiter: RampLimiter
    private var heartbeat: Heartbeat
    /// The sockets that receive into little room: those that will stall.
    var smallBuffers = 0

    init(_ plan: FleetPlan, _ behaviour: Behaviour) throws {
        self.plan = plan
        self.behaviour = behaviour
        dialer = Dialer(endpoint: plan.endpoint, sources: plan.sources)
        secure = plan.endpoint.target.isSecure ? try SecureContext(plan.endpoint) : nil
        poller = try Poller()
        limiter = RampLimiter(atOnce: plan.ramp, perSecond: plan.rampRate)
        heartbeat = Heartbeat(sockets: plan.slots, period: plan.heartbeatSeconds, from: MonotonicClock.now)
        try FileLimit.allow(plan.slots + FileLimit.spare)
        sockets = ContiguousArray(repeating: ClientSocket(), count: plan.slots)
    }

    deinit {
        for socket in sockets where socket.phase != .closed { close(socket.descriptor) }
        buffer.deallocate()
    }

    /// Sockets that still have to connect or are about to.
    var pendingCount: Int { queue.count + underWay }

    /// Connects as soon as the ramp allows.
    func open(_ slot: Int) { queue.append(slot) }

    func openAll() { for slot in sockets.indices { queue.append(slot) } }

    /// Waits for messages until `moment` at the latest, and serves them.
    func turn(until moment: UInt64, other: (Int) throws -> Void) throws {
        var now = MonotonicClock.now
        try dialQueued(now)
        var wake = min(moment, heartbeat.nextDue)
        if !queue.isEmpty, let opens = limiter.opens(underWay: underWay) { wake = min(wake, opens) }
        let slots = sockets.count
        try poller.wait(nanoseconds: wake > now ? wake - now : 0) { slot, events in
            if slot < slots { try serve(slot, events) } else { try other(slot) }
        }
        behaviour.turnEnded()
        now = MonotonicClock.now
        while let slot = heartbeat.next(at: now) {
            if sockets[slot].phase == .ready, !sockets[slot].isStalled { try send(plan.heartbeat, on: slot) }
        }
    }

    private func dialQueued(_ now: UInt64) throws {
        while let slot = queue.first, let opens = limiter.opens(underWay: underWay), opens <= now {
            queue.removeFirst()
            limiter.passed(at: now)
            guard sockets[slot].phase == .closed else { continue }
            let descriptor = try dialer.dial(plan.number(slot), room: slot < smallBuffers ? 8192 : nil)
            sockets[slot] = ClientSocket(descriptor: descriptor, phase: .connecting, dialled: now)
            underWay += 1
            try poller.add(descriptor, slot, .writable)
        }
    }

    // MARK: Steps of a connection

    private func serve(_ slot: Int, _ events: Poller.Events) throws {
        switch sockets[slot].phase {
        case .closed: return
        case .connecting:
            if let failure = dialer.failure(of: sockets[slot].descriptor) {
                return try end(slot, "could not connect: \(failure)")
            }
            openCount += 1
            guard let secure else { return try upgrade(slot) }
            sockets[slot].session = try secure.session(on: sockets[slot].descriptor)
            sockets[slot].phase = .securing
            try shakeHands(slot)
        case .securing: try shakeHands(slot)
        case .upgrading, .joining, .ready, .leaving:
            if sockets[slot].isStalled, !events.isDisjoint(with: .ended) {
                return try end(slot, "cut off while it did not read")
            }
            if events.contains(.writable) { try flush(slot) }
            if !events.isDisjoint(with: [.readable, .ended]) { try receive(slot) }
        }
    }

    private func shakeHands(_ slot: Int) throws {
        guard let session = sockets[slot].session else { return }
        switch session.handshake() {
        case .bytes: try upgrade(slot)
        case .wantsRead: try poller.change(sockets[slot].descriptor, slot, .readable)
        case .wantsWrite: try poller.change(sockets[slot].descriptor, slot, .writable)
        case .ended: try end(slot, "was cut off in the TLS handshake")
        case .failed(let reason): try end(slot, "has no TLS: \(reason)")
        }
    }

    private func upgrade(_ slot: Int) throws {
        sockets[slot].phase = .upgrading
        try poller.change(sockets[slot].descriptor, slot, .readable)
        try send(plan.endpoint.request, on: slot)
    }

    /// The server has taken the socket; it says what it came for.
    func upgraded(_ slot: Int, _ now: UInt64) throws {
        sockets[slot].phase = .joining
        let opening = try behaviour.opening(of: slot)
        sockets[slot].answersMissing = opening.answers
        for frame in opening.frames { try send(frame, on: slot) }
        if opening.answers == 0, sockets[slot].phase == .joining { try hasJoined(slot, now) }
    }

    func answered(_ slot: Int, _ now: UInt64) throws {
        sockets[slot].answersMissing -= 1
        if sockets[slot].answersMissing == 0 { try hasJoined(slot, now) }
    }

    private func hasJoined(_ slot: Int, _ now: UInt64) throws {
        sockets[slot].phase = .ready
        underWay -= 1
        readyCount += 1
        try behaviour.joined(slot, at: now, self)
    }

    // MARK: Ends

    /// Says goodbye; the socket is closed when the server answers.
    func leave(_ slot: Int) throws {
        guard sockets[slot].phase == .ready else { return }
        readyCount -= 1
        sockets[slot].phase = .leaving
        try send(OutgoingFrame.goodbye, on: slot)
    }

    /// Closes without a word.
    func cut(_ slot: Int) throws { try end(slot, nil) }

    /// - Parameter trouble: what went wrong; nil where the end was ours.
    func end(_ slot: Int, _ trouble: String?) throws {
        let phase = sockets[slot].phase
        guard phase != .closed else { return }
        switch phase {
        case .ready:
            readyCount -= 1
            if trouble != nil { droppedCount += 1 }
        case .connecting, .securing, .upgrading, .joining:
            underWay -= 1
            if trouble != nil { refusedCount += 1 }
        case .leaving, .closed: break
        }
        if phase != .connecting { openCount -= 1 }
        if let trouble, phase != .leaving { troubles.add("a socket \(trouble)") }
        close(sockets[slot].descriptor)
        sockets[slot] = ClientSocket()
        try behaviour.ended(slot, at: MonotonicClock.now, self)
    }

    /// Stops to read from a socket, or goes on.
    func stall(_ slot: Int, _ stalls: Bool) throws {
        guard sockets[slot].phase == .ready else { return }
        sockets[slot].isStalled = stalls
        try poller.change(sockets[slot].descriptor, slot, stalls ? [] : .readable)
    }
}

import Glibc

/// Many client sockets on the calling thread: connects and joins them, keeps them alive, hands on what they receive.
final class Fleet<Behaviour: FleetBehaviour> {
    var behaviour: Behaviour
    let plan: FleetPlan
    private let dialer: Dialer
    private let poller: Poller
    private var sockets: ContiguousArray<ClientSocket> = []
    private(set) var readyCount = 0
    private(set) var closedCount = 0
    private var heartbeat = Heartbeat()
    private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 18, alignment: 16)

    init(_ plan: FleetPlan, _ behaviour: Behaviour) throws {
        self.plan = plan
        self.behaviour = behaviour
        dialer = Dialer(endpoint: plan.endpoint)
        poller = try Poller()
        try OpenFiles.allow(plan.count + 64)
        sockets.reserveCapacity(plan.count)
    }

    deinit {
        for socket in sockets where socket.phase != .closed { close(socket.descriptor) }
        buffer.deallocate()
    }

    /// Returns when every socket has joined; the first that cannot ends the test.
    func connect(within seconds: Int) throws {
        let deadline = Clock.now + UInt64(seconds) * 1_000_000_000
        while readyCount < plan.count {
            while sockets.count < plan.count, sockets.count - readyCount < plan.ramp {
                let slot = sockets.count
                sockets.append(
                    ClientSocket(descriptor: try dialer.dial(slot), answersMissing: plan.awaitsSubscription ? 2 : 1))
                try poller.add(sockets[slot].descriptor, slot)
            }
            try turn(milliseconds: 100)
            guard Clock.now < deadline else {
                throw LoadFailure("Only \(readyCount) of \(plan.count) sockets had joined after \(seconds) s.")
            }
            guard closedCount == 0 else { throw LoadFailure("The hub closed a socket before all had joined.") }
        }
        heartbeat.start(sockets: plan.count, period: plan.heartbeatSeconds)
    }

    /// Waits for messages and serves them.
    func turn(milliseconds: Int) throws {
        try poller.wait(milliseconds: milliseconds) { try serve($0) }
        behaviour.turnEnded()
        while let slot = heartbeat.next() {
            if sockets[slot].phase == .ready { try send(Heartbeat.frame, on: slot) }
        }
    }

    func run(for seconds: Double) throws {
        let end = Clock.now + UInt64(seconds * 1e9)
        while Clock.now < end { try turn(milliseconds: min(100, Int((end &- Clock.now) / 1_000_000) + 1)) }
    }

    private func serve(_ slot: Int) throws {
        guard sockets[slot].phase == .connecting else { return try receive(slot) }
        if let failure = dialer.failure(of: sockets[slot].descriptor) { throw failure }
        try send(plan.endpoint.request, on: slot)
        sockets[slot].phase = .upgrading
        try poller.read(sockets[slot].descriptor, slot)
    }

    private func receive(_ slot: Int) throws {
        guard sockets[slot].phase != .closed else { return }
        let kept = sockets[slot].partial.count
        if kept > 0 { buffer.copyBytes(from: sockets[slot].partial) }
        let count = recv(sockets[slot].descriptor, buffer.baseAddress.map { $0 + kept }, buffer.count - kept, 0)
        guard count > 0 else {
            if count < 0, errno == EAGAIN || errno == EINTR { return }
            return drop(slot)
        }
        let now = Clock.now
        let bytes = UnsafeRawBufferPointer(rebasing: buffer[..<(kept + count)])
        var at = 0
        if sockets[slot].phase == .upgrading {
            guard let end = try UpgradeAnswer.end(in: bytes) else { return keep(bytes, from: 0, slot) }
            at = end
            sockets[slot].phase = .joining
            try send(OutgoingFrame.make(.text, plan.join(slot).utf8), on: slot)
        }
        while let frame = IncomingFrame(in: bytes, at: at) {
            at = frame.payload.upperBound
            try take(frame, UnsafeRawBufferPointer(rebasing: bytes[frame.payload]), slot, now)
            if sockets[slot].phase == .closed { return }
        }
        keep(bytes, from: at, slot)
    }

    private func take(_ frame: IncomingFrame, _ payload: UnsafeRawBufferPointer, _ slot: Int, _ now: UInt64) throws {
        switch frame.opcode {
        case 1 where sockets[slot].phase == .ready: behaviour.received(payload, on: slot, at: now)
        case 1: try joining(payload, slot)
        case 8: drop(slot)
        case 9: try send(OutgoingFrame.make(.pong, payload), on: slot)
        default: break
        }
    }

    private func joining(_ payload: UnsafeRawBufferPointer, _ slot: Int) throws {
        guard try JoinAnswer.isOne(payload, awaitsSubscription: plan.awaitsSubscription) else { return }
        sockets[slot].answersMissing -= 1
        guard sockets[slot].answersMissing == 0 else { return }
        sockets[slot].phase = .ready
        readyCount += 1
    }

    private func keep(_ bytes: UnsafeRawBufferPointer, from start: Int, _ slot: Int) {
        if start < bytes.count {
            sockets[slot].partial = Array(bytes[start...])
        } else if !sockets[slot].partial.isEmpty {
            sockets[slot].partial = []
        }
    }

    private func drop(_ slot: Int) {
        if sockets[slot].phase == .ready { readyCount -= 1 }
        sockets[slot].phase = .closed
        closedCount += 1
        close(sockets[slot].descriptor)
    }

    /// What clients send is small and rare: a socket that cannot take it at once belongs to a hub that does not read.
    private func send(_ bytes: [UInt8], on slot: Int) throws {
        let count = Glibc.send(sockets[slot].descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL))
        if count == bytes.count { return }
        if count < 0, errno == EPIPE || errno == ECONNRESET { return drop(slot) }
        throw LoadFailure("Socket \(slot) does not take \(bytes.count) bytes: the hub has stopped reading.")
    }
}

import CWebSockets
import Hub
import Wire

/// Finding out what sockets have certainly received (`AcknowledgementState`).
extension EventLoop {
    /// Seconds between two pings to a socket whose last changes are not proven: what a client may be sent again when it
    /// comes back. A ping and its pong cost the loop about as much as a delivery.
    private static let proofInterval: Int32 = 5

    /// How often some of those whose turn it is are asked, in milliseconds, and in how many such steps all of them are.
    private static let step: UInt64 = 20
    private static let steps = 40
    private static let fewest = 16

    /// Once a second: finds out whose turn it is.
    ///
    /// Sockets that hear the same channels are due in the same second, and pings to thousands of them, and the answers,
    /// would hold up the loop for as long as two broadcasts to all. So they are spread over most of the second.
    func askForProofs() {
        proofsDue.removeAll(keepingCapacity: true)
        for slot in delivery.sockets.indices {
            let socket = delivery.sockets[slot]
            guard socket.isOpen, !socket.isClosing else { continue }
            if !socket.hasUnproven {
                hub.nothingUnacknowledged(of: Slot(slot))
            } else if second - socket.lastProof >= Self.proofInterval {
                proofsDue.append(Slot(slot))
            }
        }
        proofsInStep = max(Self.fewest, proofsDue.count / Self.steps + 1)
        askForSomeProofs()
    }

    private func askForSomeProofs() {
        for _ in 0..<min(proofsInStep, proofsDue.count) {
            let slot = proofsDue.removeLast()
            let socket = delivery.sockets[Int(slot)]
            // One ping at a time, or the answers to all but the last would prove nothing.
            guard socket.isOpen, !socket.isClosing, socket.hasUnproven, paces[slot]?.askedAt == nil else { continue }
            askForProof(slot)
        }
        guard !proofsDue.isEmpty else { return }
        uv_timer_start(
            proofTimer,
            { handle in
                guard let loop = EventLoop.of(handle?.pointee.data) else { return }
                loop.hub.advance(to: loop.now())
                loop.askForSomeProofs()
                loop.endTurn()
            }, Self.step, 0)
    }

    func makeProofTimer() -> UnsafeMutablePointer<uv_timer_t> {
        let timer = UnsafeMutablePointer<uv_timer_t>.allocate(capacity: 1)
        uv_timer_init(loop, timer)
        timer.pointee.data = Unmanaged.passUnretained(self).toOpaque()
        return timer
    }

    /// Every close of ours goes by here: its answer is a proof.
    func beginClosing(_ slot: Slot, _ code: CloseCode, reason: StaticString) {
        // One that is being dismissed as a slow reader lost what waited for it, so that its answer proves nothing.
        guard !delivery.sockets[Int(slot)].isClosing else { return }
        hub.isClosing(slot)
        delivery.beginClosing(slot, code, reason: reason)
    }

    /// Asks a socket for a proof of what was sent to it, and that it lives.
    func askForProof(_ slot: Slot) {
        guard delivery.sockets[Int(slot)].isOpen, !delivery.sockets[Int(slot)].isClosing,
            let ping = hub.acknowledgementPing(for: slot)
        else { return }
        delivery.send(ping, to: slot)
        delivery.proofAsked(slot, second: second)
        paces[slot]?.asks(at: Self.milliseconds)
    }

    /// Of all loops' sockets these are to be asked now.
    func askForProof(_ places: [SocketPlace]) {
        for place in places where place.loop == index && Int(place.slot) < delivery.sockets.count {
            askForProof(place.slot)
        }
    }

    func answered(_ slot: Slot, _ payload: UnsafeRawBufferPointer) {
        delivery.heard(slot, second: second)
        hub.advance(to: now())
        guard hub.pong(payload, from: slot) else { return }
        execute()
        paceIsAnswered(slot)
    }
}

import CWebSockets
import Hub
import Wire

/// Finds out what the sockets of a loop have certainly received: asks them by pings of the hub's, each of which proves by its
/// answer what was sent before it.
final class ProofRequests {
    /// Lives as long as the process. Counting who holds it costs some 0.2 µs of a short request.
    private unowned(unsafe) let loop: EventLoop
    /// Sockets that are yet to be asked in this second.
    private var due: [Slot] = []
    /// How many at a time.
    private var perStep = 0
    private lazy var timer = LoopTimer(loop.libuv) { [unowned self] in goOn() }

    /// Seconds between two pings to a socket whose last changes are not proven: what a client may be sent again when it
    /// comes back. A ping and its pong cost the loop about as much as a delivery.
    private static let interval: Int32 = 5

    /// How often some of those whose turn it is are asked, in milliseconds, and in how many such steps all of them are.
    private static let step: UInt64 = 20
    private static let steps = 40
    private static let fewest = 16

    init(loop: EventLoop) {
        self.loop = loop
    }

    /// Once a second: finds out whose turn it is.
    ///
    /// Sockets that hear the same channels are due in the same second, and pings to thousands of them, and the answers,
    /// would hold up the loop for as long as two broadcasts to all. So they are spread over most of the second.
    func begin() {
        let loop = loop
        due.removeAll(keepingCapacity: true)
        for slot in loop.delivery.sockets.indices {
            let socket = loop.delivery.sockets[slot]
            guard socket.isOpen, !socket.isClosing else { continue }
            if !socket.hasUnproven {
                loop.hub.nothingUnacknowledged(of: Slot(slot))
            } else if loop.second - socket.lastProof >= Self.interval {
                due.append(Slot(slot))
            }
        }
        perStep = max(Self.fewest, due.count / Self.steps + 1)
        askSome()
    }

    private func goOn() {
        loop.hub.advance(to: loop.now())
        askSome()
        loop.endTurn()
    }

    private func askSome() {
        for _ in 0..<min(perStep, due.count) {
            let slot = due.removeLast()
            let socket = loop.delivery.sockets[Int(slot)]
            // One ping at a time, or the answers to all but the last would prove nothing.
            guard socket.isOpen, !socket.isClosing, socket.hasUnproven, !loop.recoveries.awaitsProof(of: slot) else {
                continue
            }
            ask(slot)
        }
        if !due.isEmpty { timer.start(after: Self.step) }
    }

    /// Asks a socket for a proof of what was sent to it, and that it lives.
    func ask(_ slot: Slot) {
        let loop = loop
        guard loop.delivery.sockets[Int(slot)].isOpen, !loop.delivery.sockets[Int(slot)].isClosing,
            let ping = loop.hub.acknowledgementPing(for: slot)
        else { return }
        loop.delivery.send(ping, to: slot)
        loop.delivery.proofAsked(slot, second: loop.second)
        loop.recoveries.asked(slot)
    }

    /// Of all loops' sockets these are to be asked now.
    func ask(_ places: [SocketPlace]) {
        for place in places where place.loop == loop.index && Int(place.slot) < loop.delivery.sockets.count {
            ask(place.slot)
        }
    }

    /// A pong came.
    func answered(_ slot: Slot, _ payload: UnsafeRawBufferPointer) {
        let loop = loop
        loop.delivery.heard(slot, second: loop.second)
        loop.hub.advance(to: loop.now())
        guard loop.hub.pong(payload, from: slot) else { return }
        loop.execute()
        loop.recoveries.isAnswered(slot)
    }
}

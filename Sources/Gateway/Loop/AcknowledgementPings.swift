import CWebSockets
import Hub
import Wire

/// Pings the sockets of a loop to find out what they have received: a pong acknowledges everything sent before its
/// ping.
///
/// Confined to the loop's thread.
final class AcknowledgementPings {
    private unowned let loop: EventLoop
    /// Sockets still to be pinged in this second.
    private var due: [Slot] = []
    /// The number of sockets per step.
    private var perStep = 0
    private lazy var timer = LoopTimer(loop.libuv) { [unowned self] in goOn() }

    /// Seconds between two pings to a socket whose last changes are not acknowledged, and so the span of changes that a
    /// client may be sent again when it reconnects. A ping with its pong costs the loop about as much as a delivery.
    private static let interval: Int32 = 5

    /// Milliseconds between the steps in which due sockets are pinged, and the number of steps that cover all of them.
    private static let step: UInt64 = 20
    private static let steps = 40
    private static let fewest = 16

    init(loop: EventLoop) {
        self.loop = loop
    }

    /// Called once a second: collects the sockets that are due.
    ///
    /// Sockets with the same channels are due in the same second. Pings to thousands of them, with the answers, would
    /// block the loop for as long as two broadcasts to all, so they are spread over most of the second.
    func beginSecond() {
        let loop = loop
        due.removeAll(keepingCapacity: true)
        for slot in loop.delivery.sockets.indices {
            let socket = loop.delivery.sockets[slot]
            guard socket.isOpen, !socket.isClosing, !socket.isAnswer else { continue }
            let isSoon = loop.hub.owesReceipts(Slot(slot))
            let isToBeAsked = socket.hasUnacknowledged || wantsProof(Slot(slot))
            if !isToBeAsked, !isSoon {
                loop.hub.nothingUnacknowledged(of: Slot(slot))
            } else if isSoon || loop.second - socket.lastAcknowledgementPing >= Self.interval {
                due.append(Slot(slot))
            }
        }
        perStep = max(Self.fewest, due.count / Self.steps + 1)
        sendSome()
    }

    /// Whether a sign of life is wanted and no ping is under way.
    ///
    /// Receipts that must be written back are requested once a second.
    private func wantsProof(_ slot: Slot) -> Bool { loop.hub.isWatched(slot) && !loop.hub.awaitsPong(slot) }

    private func goOn() {
        loop.hub.advanceTime(to: loop.now())
        sendSome()
        loop.endTurn()
    }

    private func sendSome() {
        for _ in 0..<min(perStep, due.count) {
            let slot = due.removeLast()
            let socket = loop.delivery.sockets[Int(slot)]
            // One ping at a time: only the answer to the last one counts.
            guard socket.isOpen, !socket.isClosing,
                socket.hasUnacknowledged || wantsProof(slot) || loop.hub.owesReceipts(slot),
                !loop.recoveries.awaitsPong(from: slot)
            else { continue }
            send(to: slot)
        }
        if !due.isEmpty { timer.start(after: Self.step) }
    }

    /// Pings a socket. Its pong acknowledges what was sent to it, and shows that it is alive.
    func send(to slot: Slot) {
        let loop = loop
        guard loop.delivery.sockets[Int(slot)].isOpen, !loop.delivery.sockets[Int(slot)].isClosing,
            let ping = loop.hub.acknowledgementPing(for: slot)
        else { return }
        loop.delivery.send(ping, to: slot)
        loop.delivery.sentAcknowledgementPing(slot, second: loop.second)
        loop.recoveries.pinged(slot)
    }

    /// Pings those of the sockets that belong to this loop.
    func send(to places: [SocketPlace]) {
        for place in places where place.loop == loop.index && Int(place.slot) < loop.delivery.sockets.count {
            send(to: place.slot)
        }
    }

    /// Handles a pong.
    func answered(by slot: Slot, _ payload: UnsafeRawBufferPointer) {
        let loop = loop
        loop.delivery.heard(slot, second: loop.second)
        loop.hub.advanceTime(to: loop.now())
        guard loop.hub.receivePong(payload, from: slot) else { return }
        loop.execute()
        loop.recoveries.answered(slot)
    }
}

import CWebSockets
import Hub
import Wire

/// Finding out what sockets have certainly received (`Lifeline`).
extension EventLoop {
    /// Seconds between two pings to a socket whose last changes are not proven: what a client may be sent again when it
    /// comes back. A ping and its pong cost the loop about as much as a delivery.
    private static let proofInterval: Int32 = 5

    /// Once a second.
    func askForProofs() {
        for slot in delivery.sockets.indices {
            let socket = delivery.sockets[slot]
            guard socket.isOpen, !socket.isClosing else { continue }
            if !socket.hasUnproven {
                hub.nothingUnproven(of: Slot(slot))
            } else if second - socket.lastProof >= Self.proofInterval, let ping = hub.proofPing(for: Slot(slot)) {
                delivery.send(ping, to: Slot(slot))
                delivery.proofAsked(Slot(slot), second: second)
            }
        }
    }

    /// Every close of ours goes by here: its answer is a proof.
    func beginClosing(_ slot: Slot, _ code: CloseCode, reason: StaticString) {
        // One that is being dismissed as a slow reader lost what waited for it, so that its answer proves nothing.
        guard !delivery.sockets[Int(slot)].isClosing else { return }
        hub.isClosing(slot)
        delivery.beginClosing(slot, code, reason: reason)
    }

    func answered(_ slot: Slot, _ payload: UnsafeRawBufferPointer) {
        delivery.heard(slot, second: second)
        hub.pong(payload, from: slot)
    }
}

import CWebSockets
import Hub
import Wire

/// Taking leave; the gateway says when.
extension EventLoop {
    /// The operator's port stays open: it says that the hub drains.
    func stopAccepting() {
        isDraining = true
        for listener in listeners where !listener.isOps { listener.close() }
        http.drain()
    }

    /// Closes one of so many shares of the sockets, behind what waits for them, in a way that makes their clients come
    /// back elsewhere.
    func closeSome(rounds: Int) {
        let open = delivery.sockets.indices.filter {
            delivery.sockets[$0].isOpen && !delivery.sockets[$0].isClosing
        }
        for slot in open.prefix(max(Self.leastClosed, (open.count + rounds - 1) / max(1, rounds))) {
            beginClosing(Slot(slot), .serviceRestart, reason: "restarting")
        }
    }

    /// A few sockets are no stampede, and nobody is to wait for them.
    private static let leastClosed = 10
}

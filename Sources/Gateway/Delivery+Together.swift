import CWebSockets
import Hub

/// Sockets that wait for the same message take it together, where there is a `SendRing`.
extension Delivery {
    /// Below, a system call for each is no dearer.
    private static let fewest = 4

    /// Writes what is pending for a socket; `sendTogether` is to follow the last one.
    mutating func serve(_ slot: Slot) {
        let socket = sockets[Int(slot)]
        guard ring != nil, socket.isOpen, socket.isPlain, !socket.isBlocked, let message = pending.only(slot),
            lws_partial_buffered(socket.wsi) == 0
        else { return drain(slot) }
        if message != shared || together.count == SendRing.batch {
            sendTogether()
            shared = message
        }
        together.append(slot)
    }

    mutating func sendTogether() {
        guard let ring, together.count >= Self.fewest else {
            for slot in together { drain(slot) }
            return together.removeAll(keepingCapacity: true)
        }
        descriptors.removeAll(keepingCapacity: true)
        for slot in together { descriptors.append(sockets[Int(slot)].fd) }
        let results = messages.withBytes(shared) { ring.send($0, to: descriptors) }
        if results.count < together.count { self.ring = nil }
        for (index, slot) in together.enumerated() {
            guard index < results.count else {
                drain(slot)
                continue
            }
            counters.writes += 1
            guard results[index] != SendRing.unknown else {
                // Part of it may be out, so nothing can follow: its client comes back and catches up.
                cutOff(slot)
                continue
            }
            switch SocketWriter.outcome(Int(results[index])) {
            case .wrote(let sent): took(shared, sent, slot)
            case .gone: discardPending(slot)
            }
        }
        together.removeAll(keepingCapacity: true)
    }
}

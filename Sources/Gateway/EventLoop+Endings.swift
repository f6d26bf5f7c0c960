import CWebSockets
import Hub
import Logging

/// The line in the log that tells of a connection's end.
extension EventLoop {
    /// Before the socket and its member are forgotten.
    func logEnd(of slot: Slot) {
        guard logger.logLevel <= .info, endings.mayTell() else { return }
        let (socket, account, reason) = (
            delivery.sockets[Int(slot)], delivery.accounts[Int(slot)], delivery.reasons[slot]
        )
        var facts: Logger.Metadata = [
            "loop": .stringConvertible(index),
            "code": .stringConvertible(socket.endCode),
            "by": .string(Self.whoClosed(socket, reason)),
            "seconds": .stringConvertible(second - account.openedAt),
            "bytes_in": .stringConvertible(account.bytesIn),
            "bytes_out": .stringConvertible(account.bytesOut),
            "messages_in": .stringConvertible(account.messagesIn),
            "messages_out": .stringConvertible(account.messagesOut),
        ]
        if let peer = account.peer { facts["peer"] = .string(peer.text) }
        if let user = hub.user(of: slot) { facts["user"] = .string(user) }
        // A peer's own words are left out: anything might stand there.
        if let reason { facts["reason"] = .string("\(reason)") }
        logger.info("connection ended", metadata: facts)
    }

    /// `hub` and `peer` said goodbye first; `nobody` did where the connection just broke.
    private static func whoClosed(_ socket: Socket, _ reason: StaticString?) -> String {
        if reason != nil { return "hub" }
        return socket.endCode == 1006 ? "nobody" : "peer"
    }
}

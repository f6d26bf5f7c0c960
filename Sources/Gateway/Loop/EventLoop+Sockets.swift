import CWebSockets
import Glibc
import Hub
import Logging
import Wire

/// Allocates a number to each WebSocket of a loop; numbers of closed ones are reused.
struct SlotAllocator {
    private var free: [Slot] = []
    private var count: Slot = 0

    mutating func take() -> Slot {
        if let slot = free.popLast() { return slot }
        defer { count += 1 }
        return count
    }

    mutating func release(_ slot: Slot) { free.append(slot) }
}

/// Accepted connections of clients.
extension EventLoop {
    /// Counts a connection for its address, and makes room for it if descriptors run short.
    ///
    /// - Returns: nil if the connection must be closed.
    func takeIn(_ fd: Int32) -> Arrival? {
        guard var arrival = admission.arrive(by: fd) else {
            counters.unheard += 1
            return nil
        }
        // If another loop ends one, that is too late for this connection, but in time for the client's next attempt.
        if arrival.isOver, let source = arrival.source, !endIdle(of: source) {
            for sibling in siblings { sibling.post(.endIdle(source)) }
        }
        guard configuration.descriptors.isShort(at: fd), !makeRoom(for: arrival.source) else { return arrival }
        for sibling in siblings { sibling.post(.makeRoom) }
        guard configuration.descriptors.isUsedUp(at: fd) else { return arrival }
        admission.depart(&arrival)
        counters.unheard += 1
        return nil
    }

    func endIdle(of address: PeerAddress) -> Bool { http.endIdle(of: address) }

    func makeRoom(for newcomer: PeerAddress?) -> Bool { tunnels?.makeRoom() == true || http.makeRoom(for: newcomer) }
}

/// WebSockets that open, fall silent, and end.
extension EventLoop {
    func opened(_ wsi: OpaquePointer, _ client: Admission.Client) -> Slot {
        let slot = slots.take()
        countedAddresses.note(client.countedAddress, for: slot)
        counters.accepted += 1
        traces[slot] = client.trace
        if let tunnel = client.tunnel { openTunnels[slot] = tunnel }
        let fd = Int32(lws_get_socket_fd(wsi))
        delivery.open(
            slot, Socket(wsi: wsi, fd: fd, tunnel: client.tunnel?.pointer, lastHeard: second),
            SocketAccount(peer: client.peer, second: second, serial: counters.accepted))
        hub.connect(
            slot, version: client.version, claims: client.claims, isCounted: client.countedUser != nil,
            isPage: client.isPage)
        noteConnections()
        return slot
    }

    func closed(_ slot: Slot) {
        _ = partial.take(slot)
        postponement.lastRead = -1
        pauses.forget(slot)
        delivery.tracer.forget(slot)
        counters.ended(with: delivery.sockets[Int(slot)].endCode)
        logEnd(of: slot)
        let (isUnloaded, silence) = (saysGoodBye(slot), silence(before: slot))
        delivery.close(slot)
        recoveries.forget(slot)
        hub.disconnect(slot, at: now(), isUnloaded: isUnloaded, afterSilence: silence)
        limits.connections.leave(countedAddresses[slot])
        noteConnections()
        traces[slot] = nil
        if tunnels != nil { openTunnels[slot] = nil }
        slots.release(slot)
        execute()
    }

    /// Whether the client announced that it leaves. A browser closes with 1001 when a tab is closed (WHATWG WebSockets,
    /// "make disappear"); Chromium sends no code when a page is reloaded, left, or kept to be shown again; and a page's
    /// own close sends 1000 or nothing.
    private func saysGoodBye(_ slot: Slot) -> Bool {
        let code = delivery.sockets[Int(slot)].endCode
        return delivery.reasons[slot] == nil && (code == 1001 || (code == 1000 || code == 1005) && hub.isPage(slot))
    }

    /// Milliseconds for which a closing socket had not answered a ping; 0 if it was not pinged. If the peer ends the
    /// connection, that counts as an answer: its system has spoken.
    private func silence(before slot: Slot) -> Int64 {
        let socket = delivery.sockets[Int(slot)]
        guard socket.wasPinged, delivery.reasons[slot] != nil else { return 0 }
        return Int64(second - socket.lastHeard) * 1000
    }

    func noteConnections() {
        // The hub counts HTTP readers of events among its connections.
        gauges.connections.store(hub.connectionCount + answers.count - router.events.count, ordering: .relaxed)
    }

    /// Called once a second: pings silent sockets, and closes those that stay silent.
    func tickSockets() {
        for slot in delivery.sockets.indices {
            let socket = delivery.sockets[slot]
            guard socket.isOpen else { continue }
            if socket.isClosing {
                delivery.closingGoesOn(Slot(slot))
                continue
            }
            guard !socket.isAnswer else {
                answers.tick(Slot(slot))
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
    }

    // MARK: Closing

    /// Starts every close that the hub initiates. The peer's answer acknowledges everything sent before it.
    ///
    /// - Parameter asks: also sends a ping for acknowledgement.
    func beginClosing(_ slot: Slot, _ code: CloseCode, reason: StaticString, asks: Bool = false) {
        // A socket dismissed as a slow reader lost its pending messages, so its answer acknowledges nothing.
        guard !delivery.sockets[Int(slot)].isClosing else { return }
        guard !delivery.sockets[Int(slot)].isAnswer else { return answers.end(slot) }
        let ping = hub.isClosing(slot)
        if asks, let ping { delivery.send(ping, to: slot) }
        delivery.beginClosing(slot, code, reason: reason)
    }

    /// Closes one of `rounds` shares of the sockets, after their pending messages, in a way that makes the clients
    /// reconnect elsewhere. For a drain, paced by the gateway.
    func closeSome(rounds: Int) {
        let open = delivery.sockets.indices.filter {
            delivery.sockets[$0].isOpen && !delivery.sockets[$0].isClosing
        }
        for slot in open.prefix(max(Self.leastClosed, (open.count + rounds - 1) / max(1, rounds))) {
            beginClosing(Slot(slot), .serviceRestart, reason: "restarting", asks: true)
        }
    }

    /// So few reconnecting clients are no stampede, and the drain need not take longer for them.
    private static let leastClosed = 10

    /// Handles a close frame from the peer: either it answers ours, and acknowledges everything before it, or we answer
    /// it.
    ///
    /// libwebsockets would answer in any case, and thus a second time if the close was ours, which browsers report as a
    /// protocol error. The result makes it end the connection at once, send nothing itself, and pass on nothing that
    /// the peer sent after the close frame (RFC 6455, section 5.5.1).
    func peerCloses(_ slot: Slot, _ payload: UnsafeRawBufferPointer) -> Int32 {
        if delivery.isAnswer(payload, from: slot) { hub.closeAnswered(slot) }
        delivery.answerClose(slot, PeerClose(payload))
        return -1
    }

    /// Called when libwebsockets is about to end the connection: because it is over, because of what we sent, or
    /// because the peer broke a rule. In the last case lws has a close frame of its own to send, or forgets to send one
    /// (control frames over 125 bytes, lengths over 63 bits).
    func lwsEnds(_ slot: Slot, _ wsi: OpaquePointer) {
        let socket = delivery.sockets[Int(slot)]
        guard socket.isOpen, !socket.isClosing, !admission.isDraining else { return }
        let length = Int(lws_get_close_length(wsi))
        if length >= 2, let payload = lws_get_close_payload(wsi) {
            let code = UInt16(payload[0]) << 8 | UInt16(payload[1])
            delivery.lwsCloses(slot, code, reason: "protocol error")
            delivery.settleClose(slot)
        } else if Self.isThere(socket.fd) {
            delivery.failProtocol(slot)
        }
    }

    /// True unless the peer has ended the connection itself.
    private static func isThere(_ fd: Int32) -> Bool {
        var byte: UInt8 = 0
        let count = recv(fd, &byte, 1, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT))
        return count > 0 || count < 0 && (errno == EAGAIN || errno == EINTR)
    }

    // MARK: Logging

    /// Logs refused joins, row subscriptions that failed, and refused messages.
    func logFailures() {
        for (slot, failure) in hub.takeFailures() {
            let (message, reason): (Logger.Message, String) =
                switch failure.subject {
                case .subscription: ("A subscription was refused", failure.reason.rawValue)
                // A separate reason, because the log counts lines with the same reason together.
                case .message: ("A message was refused", "message_" + failure.reason.rawValue)
                }
            denials.tell(
                message, reason: reason, why: failure.sentence, of: delivery.accounts[Int(slot)].peer, at: second,
                logger, trace: traces[slot])
        }
    }

    /// Called before the socket and its member are forgotten.
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
        if let user = hub.user(of: slot) { facts["user"] = .string(user.text) }
        // The peer's own reason is left out, because it can contain anything.
        if let reason { facts["reason"] = .string("\(reason)") }
        for fact in traces[slot]?.facts ?? [] { facts[fact.name] = .string(fact.value) }
        logger.info("connection ended", metadata: facts)
    }

    /// `hub` or `peer` sent the first close frame; `nobody` stands for a broken connection.
    private static func whoClosed(_ socket: Socket, _ reason: StaticString?) -> String {
        if reason != nil { return "hub" }
        return socket.endCode == 1006 ? "nobody" : "peer"
    }
}

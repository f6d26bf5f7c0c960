import CWebSockets
import Glibc
import Hub
import Wire

/// The end of a WebSocket (RFC 6455, section 7): each side sends one close frame, and nothing behind it.
extension Delivery {
    /// Our close frame is out, and all that was sent to the socket before it.
    func hasSentClose(_ slot: Slot) -> Bool {
        sockets[Int(slot)].closeCode != 0 && pending.isEmpty(slot)
    }

    /// Codes that libwebsockets 4.1.6 takes for ones that no peer may send: it has written 1002 over them in what it
    /// shows us, also where the peer repeats our own.
    private static let overwritten: Set<UInt16> = [
        CloseCode.serviceRestart.rawValue, CloseCode.tryAgainLater.rawValue,
    ]

    /// Whether the peer's close frame answers ours, which came behind everything that was ever sent to it.
    ///
    /// An answer repeats the code (RFC 6455, section 5.5.1); a peer that closes by itself at the same moment has another
    /// one, save for 1000.
    func isAnswer(_ payload: UnsafeRawBufferPointer, from slot: Slot) -> Bool {
        let socket = sockets[Int(slot)]
        guard socket.isClosing, !socket.isDismissed, hasSentClose(slot), payload.count >= 2 else { return false }
        let code = UInt16(payload[0]) << 8 | UInt16(payload[1])
        if code == CloseCode.protocolError.rawValue, Self.overwritten.contains(socket.closeCode) {
            // A peer that found a fault of ours says so in its own words.
            let words = payload.dropFirst(2)
            return words.isEmpty || reasons[slot].map { words.elementsEqual($0.bytes) } ?? false
        }
        return code == socket.closeCode && code != CloseCode.normal.rawValue
    }

    /// The peer's close frame is in, and the connection is about to end: answers it, unless it is the answer itself.
    mutating func answerClose(_ slot: Slot, _ close: PeerClose) {
        if sockets[Int(slot)].endCode == 1006 { sockets[Int(slot)].endCode = close.code }
        if !hasSentClose(slot) { sendLast(close.answer, slot) }
        settleClose(slot)
    }

    /// The connection is about to end because the peer broke a rule of the protocol, of which it was told nothing yet.
    mutating func failProtocol(_ slot: Slot) {
        guard !hasSentClose(slot) else { return settleClose(slot) }
        lwsCloses(slot, CloseCode.protocolError.rawValue, reason: "protocol error")
        sendLast(.close(.protocolError, reason: "protocol error"), slot)
        settleClose(slot)
    }

    /// libwebsockets sends the close frame, because it is in the middle of reading.
    mutating func lwsCloses(_ slot: Slot, _ code: UInt16, reason: StaticString) {
        guard sockets[Int(slot)].endCode == 1006 else { return }
        sockets[Int(slot)].endCode = code
        reasons[slot] = reason
    }

    /// Nothing is sent from here on.
    mutating func settleClose(_ slot: Slot) {
        discardPending(slot)
        sockets[Int(slot)].isClosing = true
        sockets[Int(slot)].isDismissed = true
        sockets[Int(slot)].isSettled = true
    }

    /// A frame ahead of all that is pending, which ends between frames always (`finishFrame`).
    private mutating func sendLast(_ frame: Frame, _ slot: Slot) {
        let socket = sockets[Int(slot)]
        if !tracer.isIdle { trace(frame, to: [slot], except: nil) }
        frame.bytes.withUnsafeBytes { bytes in
            guard case .wrote(let count) = SocketWriter.send(bytes, to: socket), count < bytes.count else { return }
            _ = SocketWriter.handOver(UnsafeRawBufferPointer(rebasing: bytes[count...]), to: socket)
        }
        // A socket that is closed with input unread is reset, and a reset may overtake the frame.
        Self.discardInput(socket)
    }

    /// What has arrived and nobody will read, within bounds: a peer that goes on sending is reset.
    private static func discardInput(_ socket: Socket) {
        withUnsafeTemporaryAllocation(byteCount: 16_384, alignment: 1) { scratch in
            var rounds = 16
            while rounds > 0, recv(socket.fd, scratch.baseAddress, scratch.count, Int32(MSG_DONTWAIT)) > 0 {
                rounds -= 1
            }
        }
    }
}

extension StaticString {
    fileprivate var bytes: UnsafeBufferPointer<UInt8> {
        UnsafeBufferPointer(start: utf8Start, count: utf8CodeUnitCount)
    }
}

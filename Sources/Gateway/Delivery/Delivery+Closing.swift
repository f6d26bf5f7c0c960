import CWebSockets
import Glibc
import Hub
import Wire

/// The end of a WebSocket (RFC 6455, section 7): each side sends one close frame, and nothing after it.
extension Delivery {
    /// True once our close frame, and everything before it, has been sent.
    func hasSentClose(_ slot: Slot) -> Bool {
        sockets[Int(slot)].closeCode != 0 && pending.isEmpty(slot)
    }

    /// Codes that libwebsockets 4.1.6 considers forbidden for peers. It overwrites them with 1002 before it shows them
    /// to us, even if the peer only repeats our own code.
    private static let overwritten: Set<UInt16> = [
        CloseCode.serviceRestart.rawValue, CloseCode.tryAgainLater.rawValue,
    ]

    /// Whether the peer's close frame answers ours, which followed everything ever sent to the peer.
    ///
    /// An answer repeats the code (RFC 6455, section 5.5.1). A peer that closes on its own at the same moment sends a
    /// different one, except for 1000.
    func isAnswer(_ payload: UnsafeRawBufferPointer, from slot: Slot) -> Bool {
        let socket = sockets[Int(slot)]
        guard socket.isClosing, !socket.isDismissed, hasSentClose(slot), payload.count >= 2 else { return false }
        let code = UInt16(payload[0]) << 8 | UInt16(payload[1])
        if code == CloseCode.protocolError.rawValue, Self.overwritten.contains(socket.closeCode) {
            // A peer that found a protocol error of ours gives its own reason.
            let words = payload.dropFirst(2)
            return words.isEmpty || reasons[slot].map { words.elementsEqual($0.bytes) } ?? false
        }
        return code == socket.closeCode && code != CloseCode.normal.rawValue
    }

    /// Handles the peer's close frame, after which the connection ends: answers it, unless it is itself an answer.
    mutating func answerClose(_ slot: Slot, _ close: PeerClose) {
        if sockets[Int(slot)].endCode == 1006 { sockets[Int(slot)].endCode = close.code }
        if !hasSentClose(slot) { sendLast(close.answer, slot) }
        settleClose(slot)
    }

    /// Sends a close frame for a protocol error of the peer, if none was sent; the connection is about to end.
    mutating func failProtocol(_ slot: Slot) {
        guard !hasSentClose(slot) else { return settleClose(slot) }
        lwsCloses(slot, CloseCode.protocolError.rawValue, reason: "protocol error")
        sendLast(.close(.protocolError, reason: "protocol error"), slot)
        settleClose(slot)
    }

    /// Records a close whose frame libwebsockets sends, because it is in the middle of reading.
    mutating func lwsCloses(_ slot: Slot, _ code: UInt16, reason: StaticString) {
        guard sockets[Int(slot)].endCode == 1006 else { return }
        sockets[Int(slot)].endCode = code
        reasons[slot] = reason
    }

    /// Marks the close as complete: nothing more is sent.
    mutating func settleClose(_ slot: Slot) {
        discardPending(slot)
        sockets[Int(slot)].isClosing = true
        sockets[Int(slot)].isDismissed = true
        sockets[Int(slot)].isSettled = true
    }

    /// Sends a frame ahead of everything pending. This never splits a frame (`finishFrame`).
    private mutating func sendLast(_ frame: Frame, _ slot: Slot) {
        let socket = sockets[Int(slot)]
        if !tracer.isIdle { trace(frame, to: [slot], except: nil) }
        frame.bytes.withUnsafeBytes { bytes in
            guard case .wrote(let count) = SocketWriter.send(bytes, to: socket), count < bytes.count else { return }
            _ = SocketWriter.handOver(UnsafeRawBufferPointer(rebasing: bytes[count...]), to: socket)
        }
        // Closing a socket with unread input resets it, and the reset may overtake the frame.
        Self.discardInput(socket)
    }

    /// Reads and drops input that is no longer needed, within bounds: a peer that keeps sending is reset.
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

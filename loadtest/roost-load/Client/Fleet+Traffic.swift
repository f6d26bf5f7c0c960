import Glibc

extension Fleet {
    /// A server that takes nothing for so long has stopped to read.
    private static var mostUnsent: Int { 1 << 24 }

    // MARK: Receiving

    func receive(_ slot: Int) throws {
        while true {
            let kept = sockets[slot].partial.count
            if kept > 0 { buffer.copyBytes(from: sockets[slot].partial) }
            guard buffer.count > kept else { return try end(slot, "was sent a message of more than \(kept) bytes") }
            guard let count = try read(slot, kept) else { return }
            let isSecure = sockets[slot].session != nil
            try take(UnsafeRawBufferPointer(rebasing: buffer[..<(kept + count)]), slot)
            // TLS may hold bytes that the kernel does not know of.
            guard isSecure, sockets[slot].phase != .closed else { return }
        }
    }

    /// How many bytes came, behind the first `kept`; nil when there are none.
    @inline(__always)
    private func read(_ slot: Int, _ kept: Int) throws -> Int? {
        guard let start = buffer.baseAddress else { return nil }
        if let session = sockets[slot].session {
            switch session.read(start + kept, room: buffer.count - kept) {
            case .bytes(let count): return count
            case .wantsRead, .wantsWrite: return nil
            case .ended, .failed:
                try end(slot, "was cut off without a close frame")
                return nil
            }
        }
        let count = recv(sockets[slot].descriptor, start + kept, buffer.count - kept, 0)
        if count > 0 { return count }
        if count < 0, errno == EAGAIN || errno == EINTR { return nil }
        try end(slot, "was cut off without a close frame")
        return nil
    }

    @inline(__always)
    private func take(_ bytes: UnsafeRawBufferPointer, _ slot: Int) throws {
        let now = MonotonicClock.now
        var at = 0
        if sockets[slot].phase == .upgrading {
            switch UpgradeAnswer(bytes) {
            case .incomplete: return keep(bytes, from: 0, slot)
            case .refused(let sentence): return try end(slot, sentence)
            case .accepted(let end): at = end
            }
            try upgraded(slot, now)
        }
        while sockets[slot].phase != .closed, let frame = IncomingFrame(in: bytes, at: at) {
            at = frame.payload.upperBound
            try take(frame, UnsafeRawBufferPointer(rebasing: bytes[frame.payload]), slot, now)
        }
        if sockets[slot].phase != .closed { keep(bytes, from: at, slot) }
    }

    @inline(__always)
    private func take(_ frame: IncomingFrame, _ payload: UnsafeRawBufferPointer, _ slot: Int, _ now: UInt64) throws {
        switch frame.opcode {
        case 1, 2:
            if sockets[slot].phase == .leaving { return }
            if try !behaviour.received(payload, on: slot, at: now, self) { try other(payload, slot, now) }
        case 8: try end(slot, CloseFrame.sentence(payload))
        case 9: try send(OutgoingFrame.make(.pong, payload), on: slot)
        default: break
        }
    }

    /// What is no message of the run: an answer to a join, or bad news.
    private func other(_ payload: UnsafeRawBufferPointer, _ slot: Int, _ now: UInt64) throws {
        let isJoining = sockets[slot].phase == .joining
        if plan.takesAnyAnswer { return isJoining ? try answered(slot, now) : () }
        switch JoinAnswer(payload, awaitsSubscription: plan.awaitsSubscription) {
        case .expected where isJoining: try answered(slot, now)
        case .refused(let sentence): isJoining ? try end(slot, sentence) : troubles.add("a socket \(sentence)")
        default: break
        }
    }

    @inline(__always)
    private func keep(_ bytes: UnsafeRawBufferPointer, from start: Int, _ slot: Int) {
        if start < bytes.count {
            sockets[slot].partial = Array(bytes[start...])
        } else if !sockets[slot].partial.isEmpty {
            sockets[slot].partial = []
        }
    }

    // MARK: Sending

    /// What the server does not take at once waits for it, in order.
    func send(_ bytes: [UInt8], on slot: Int) throws {
        guard sockets[slot].phase != .closed else { return }
        guard sockets[slot].unsent.isEmpty else { return try wait(bytes[...], slot) }
        guard let count = try write(bytes[...], slot) else { return }
        if count < bytes.count { try wait(bytes[count...], slot) }
    }

    func flush(_ slot: Int) throws {
        guard let count = try write(sockets[slot].unsent[...], slot) else { return }
        sockets[slot].unsent.removeFirst(count)
        if sockets[slot].unsent.isEmpty { try poller.change(sockets[slot].descriptor, slot, .readable) }
    }

    private func wait(_ bytes: ArraySlice<UInt8>, _ slot: Int) throws {
        if sockets[slot].unsent.isEmpty { try poller.change(sockets[slot].descriptor, slot, [.readable, .writable]) }
        sockets[slot].unsent += bytes
        if sockets[slot].unsent.count > Self.mostUnsent {
            try end(slot, "has a server that does not read any more")
        }
    }

    /// How many bytes were taken; nil when the socket has ended.
    private func write(_ bytes: ArraySlice<UInt8>, _ slot: Int) throws -> Int? {
        try bytes.withUnsafeBytes { raw in
            guard let start = raw.baseAddress, raw.count > 0 else { return 0 }
            if let session = sockets[slot].session {
                switch session.write(start, count: raw.count) {
                case .bytes(let count): return count
                case .wantsRead, .wantsWrite: return 0
                case .ended, .failed:
                    try end(slot, "was cut off without a close frame")
                    return nil
                }
            }
            let count = Glibc.send(sockets[slot].descriptor, start, raw.count, Int32(MSG_NOSIGNAL))
            if count >= 0 { return count }
            if errno == EAGAIN || errno == EINTR { return 0 }
            try end(slot, "was cut off without a close frame")
            return nil
        }
    }
}

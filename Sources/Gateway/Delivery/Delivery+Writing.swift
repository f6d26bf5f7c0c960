import CWebSockets
import Hub

/// Writes the bytes pending for a socket: all in one write, or as many as the socket takes.
extension Delivery {
    private static let batchMessages = 256
    private static let batchBytes = 65_536

    /// Writes until nothing is pending or the socket takes no more.
    mutating func drain(_ slot: Slot) {
        let socket = sockets[Int(slot)]
        guard socket.isOpen, !socket.isBlocked else { return }
        if !runs.isEmpty { closeRuns() }
        if let message = pending.only(slot), writeWhole(message, to: slot, socket) { return }
        while !pending.isEmpty(slot) {
            pending.peek(slot, limit: Self.batchMessages, into: &batch)
            let start = pending.taken(slot)
            let size = batch.count == 1 ? messages.length(batch[0]) - start : gather(from: start)
            let outcome: SocketWriter.Outcome
            if batch.count == 1 {
                outcome = messages.withBytes(batch[0]) {
                    SocketWriter.send(UnsafeRawBufferPointer(rebasing: $0[start...]), to: socket)
                }
            } else {
                outcome = scratch.withUnsafeBytes { SocketWriter.send($0, to: socket) }
            }
            counters.writes += 1
            guard case .wrote(let sent) = outcome else {
                discardPending(slot)
                break
            }
            note(bytes: sent, slot)
            if sent > 0 { sockets[Int(slot)].hasTaken = true }
            let rest = settle(slot, sent)
            guard sent == size else {
                finishFrame(slot, rest, socket)
                break
            }
        }
        noteProgress(slot)
    }

    /// Counts bytes taken by the socket, or by lws on its behalf.
    private mutating func note(bytes: Int, _ slot: Slot) {
        counters.bytes += bytes
        accounts[Int(slot)].bytesOut += bytes
    }

    private mutating func note(frames: Int, _ slot: Slot) {
        counters.frames += frames
        accounts[Int(slot)].messagesOut &+= UInt32(truncatingIfNeeded: frames)
    }

    /// Handles the usual case, one message that the socket takes whole. If false, nothing has changed, and the general
    /// way follows.
    private mutating func writeWhole(_ message: Int32, to slot: Slot, _ socket: Socket) -> Bool {
        let outcome = messages.withBytes(message) { SocketWriter.send($0, to: socket) }
        counters.writes += 1
        guard case .wrote(let sent) = outcome else { return false }
        took(message, sent, slot)
        return true
    }

    /// Records how many bytes the socket took of its only pending message, none of which had been written before.
    mutating func took(_ message: Int32, _ sent: Int, _ slot: Slot) {
        let socket = sockets[Int(slot)]
        let length = messages.length(message)
        note(bytes: sent, slot)
        guard sent == length else {
            if sent > 0 { sockets[Int(slot)].hasTaken = true }
            finishFrame(slot, sent, socket)
            return noteProgress(slot)
        }
        note(frames: messages.frames(message, in: 0..<length), slot)
        _ = pending.removeFirst(slot, length: length)
        messages.release(message)
        if socket.isBehind || socket.needsResync || socket.isAwaited || socket.isClosing { noteProgress(slot) }
    }

    /// Joins the batch's messages in `scratch`. Consecutive sockets with the same bytes pending share the copy.
    private mutating func gather(from start: Int) -> Int {
        if scratchChanges == messages.changes, start == scratchStart, batch == scratchBatch { return scratch.count }
        scratch.removeAll(keepingCapacity: true)
        var taken = 0
        for message in batch {
            let length = messages.length(message)
            if taken > 0, scratch.count + length > Self.batchBytes { break }
            scratch += taken == 0 ? messages.bytes(message)[start...] : messages.bytes(message)[...]
            taken += 1
        }
        batch.removeLast(batch.count - taken)
        scratchBatch = batch
        scratchStart = start
        scratchChanges = messages.changes
        return scratch.count
    }

    /// Removes the fully written messages from the list. Returns how many bytes of the next one were written.
    private mutating func settle(_ slot: Slot, _ sent: Int) -> Int {
        var sent = sent
        for message in batch {
            let start = pending.taken(slot)
            let length = messages.length(message)
            guard sent >= length - start else { break }
            sent -= length - start
            note(frames: messages.frames(message, in: start..<length), slot)
            _ = pending.removeFirst(slot, length: length)
            messages.release(message)
        }
        return sent
    }

    /// Handles a full socket. A partly sent frame must be finished by lws, or by the tunnel, before anything else is
    /// written. The frames behind it stay here, so that no more than one is stored there for a slow reader.
    private mutating func finishFrame(_ slot: Slot, _ written: Int, _ socket: Socket) {
        guard !socket.isAnswer else {
            if written > 0 { pending.advance(slot, by: written) }
            return waitUntilWritable(slot, socket)
        }
        if written > 0, let message = pending.first(slot) {
            let start = pending.taken(slot)
            let (end, length) = (messages.frameEnd(message, at: start + written - 1), messages.length(message))
            let outcome = messages.withBytes(message) {
                start + written == end
                    ? .wrote(0)
                    : SocketWriter.handOver(UnsafeRawBufferPointer(rebasing: $0[(start + written)..<end]), to: socket)
            }
            note(frames: messages.frames(message, in: start..<end), slot)
            if case .wrote(let bytes) = outcome { note(bytes: bytes, slot) }
            if end < length {
                pending.advance(slot, by: end - start)
            } else {
                _ = pending.removeFirst(slot, length: length)
                messages.release(message)
            }
            if case .gone = outcome {
                discardPending(slot)
                return
            }
        }
        waitUntilWritable(slot, socket)
    }

    private mutating func waitUntilWritable(_ slot: Slot, _ socket: Socket) {
        sockets[Int(slot)].isBlocked = true
        if let tunnel = socket.tunnel {
            roost_tunnel_await_room(tunnel, Int32(slot))
        } else if socket.isAnswer {
            answers.blocked.append(slot)
        } else {
            lws_callback_on_writable(socket.wsi)
        }
    }
}

/// Sends a message to many sockets together if there is a `SendRing`.
extension Delivery {
    /// With fewer sockets, a system call for each costs no more.
    private static let fewest = 4

    /// Writes a socket's pending bytes, or queues it for `sendTogether`, which must follow the last call.
    mutating func serve(_ slot: Slot) {
        let socket = sockets[Int(slot)]
        guard ring != nil, socket.isOpen, socket.tunnel == nil, !socket.isBlocked, let message = pending.only(slot),
            !socket.isHeldByLWS
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
                // Part of it may have been sent, so nothing can follow. The client reconnects and catches up.
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

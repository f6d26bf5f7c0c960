import CWebSockets
import Hub

/// Putting on a socket what is pending for it: all of it in one write, or as much as the socket takes.
extension Delivery {
    private static let batchFrames = 256
    private static let batchBytes = 65_536

    /// Writes what is pending for a socket, until nothing is or the socket takes no more.
    mutating func drain(_ slot: Slot) {
        let socket = sockets[Int(slot)]
        guard socket.isOpen, !socket.isBlocked else { return }
        if let message = pending.only(slot), socket.isPlain, writeWhole(message, to: slot, socket) { return }
        while !pending.isEmpty(slot) {
            pending.peek(slot, limit: Self.batchFrames, into: &batch)
            let size = batch.count == 1 ? messages.length(batch[0]) : gather()
            let outcome: SocketWriter.Outcome
            if batch.count == 1 {
                outcome = messages.bytes(batch[0]).withUnsafeBytes { Self.write($0, to: socket) }
            } else {
                outcome = scratch.withUnsafeBytes { Self.write($0, to: socket) }
            }
            counters.writes += 1
            guard case .wrote(let sent) = outcome else {
                discardPending(slot)
                break
            }
            counters.bytes += sent
            if sent > 0 { sockets[Int(slot)].hasTaken = true }
            let rest = settle(slot, sent)
            guard sent == size else {
                finishFrame(slot, rest, socket)
                break
            }
            if !socket.isPlain, lws_partial_buffered(socket.wsi) != 0 {
                waitUntilWritable(slot, socket)
                break
            }
        }
        noteProgress(slot)
    }

    /// The usual case, one frame that the socket takes whole. False leaves everything as it was, or partly sent frames to
    /// the general way.
    private mutating func writeWhole(_ message: Int32, to slot: Slot, _ socket: Socket) -> Bool {
        let length = messages.length(message)
        guard lws_partial_buffered(socket.wsi) == 0 else { return false }
        let outcome = messages.withBytes(message) { SocketWriter.send($0, to: socket) }
        counters.writes += 1
        guard case .wrote(let sent) = outcome else { return false }
        counters.bytes += sent
        guard sent == length else {
            finishFrame(slot, sent, socket)
            noteProgress(slot)
            return true
        }
        _ = pending.removeFirst(slot, length: length)
        messages.release(message)
        counters.frames += 1
        if socket.isBehind || socket.isOwed || socket.isAwaited { noteProgress(slot) }
        return true
    }

    private static func write(_ bytes: UnsafeRawBufferPointer, to socket: Socket) -> SocketWriter.Outcome {
        socket.isPlain ? SocketWriter.send(bytes, to: socket) : SocketWriter.handOver(bytes, to: socket)
    }

    /// Joins the batch's frames in `scratch`; sockets in a row that wait for the same frames share the copy.
    private mutating func gather() -> Int {
        if scratchDiscards == messages.discards, batch == scratchBatch { return scratch.count }
        scratch.removeAll(keepingCapacity: true)
        var taken = 0
        for message in batch {
            let length = messages.length(message)
            if taken > 0, scratch.count + length > Self.batchBytes { break }
            scratch += messages.bytes(message)
            taken += 1
        }
        batch.removeLast(batch.count - taken)
        scratchBatch = batch
        scratchDiscards = messages.discards
        return scratch.count
    }

    /// Takes the frames that were written whole off the list. Returns how much of the next one was written.
    private mutating func settle(_ slot: Slot, _ sent: Int) -> Int {
        var sent = sent
        for message in batch {
            let length = messages.length(message)
            guard sent >= length else { break }
            sent -= length
            _ = pending.removeFirst(slot, length: length)
            messages.release(message)
            counters.frames += 1
        }
        return sent
    }

    /// The socket is full. A frame of which a part is out must be finished by lws before anything else is written.
    private mutating func finishFrame(_ slot: Slot, _ written: Int, _ socket: Socket) {
        if written > 0, let message = pending.first(slot) {
            let bytes = messages.bytes(message)
            let outcome = bytes.withUnsafeBytes {
                SocketWriter.handOver(UnsafeRawBufferPointer(rebasing: $0[written...]), to: socket)
            }
            _ = pending.removeFirst(slot, length: bytes.count)
            messages.release(message)
            counters.frames += 1
            if case .gone = outcome {
                discardPending(slot)
                return
            }
        }
        waitUntilWritable(slot, socket)
    }

    private mutating func waitUntilWritable(_ slot: Slot, _ socket: Socket) {
        sockets[Int(slot)].isBlocked = true
        lws_callback_on_writable(socket.wsi)
    }
}

import CWebSockets
import Hub
import Wire

/// Brings frames to the sockets of a loop.
///
/// Enqueuing only notes, per socket, which frames wait for it. At the end of the loop's turn every socket with something
/// pending gets one write that holds all of it. Fan-outs to many sockets are served in slices, so that a broadcast to
/// 10,000 (90 ms of sends) leaves the loop free for others in between; a socket's frames keep their order in any case,
/// because a socket has one list, whoever serves it.
///
/// **Overload**: a socket may have `cap` bytes pending. One more and it is cut off, without a close frame (it takes no
/// bytes), so that its client reconnects. Memory never grows with a slow reader beyond that.
struct Delivery: ~Copyable {
    /// The most bytes a socket may have pending.
    private let cap: Int
    /// Pending bytes above which the change feed is held back for a while rather than the socket cut off.
    private let lagMark: Int
    private var messages = MessageTable()
    private var pending = PendingLists()
    private(set) var sockets: [Socket] = []
    private var quick: [Slot] = []
    private var bulk: [Slot] = []
    private var bulkStart = 0
    private var overflowed: [Slot] = []
    private var batch: [Int32] = []
    private var scratch: [UInt8] = []
    private var scratchBatch: [Int32] = []
    private var scratchDiscards = 0
    private(set) var laggards = 0
    private(set) var counters = Counters()

    struct Counters {
        var frames = 0
        var bytes = 0
        var writes = 0
        var overflows = 0
    }

    private static let bulkThreshold = 256
    private static let sliceWrites = 256
    private static let batchFrames = 256
    private static let batchBytes = 65_536

    init(cap: Int) {
        self.cap = cap
        lagMark = cap / 4
    }

    var hasWork: Bool { !quick.isEmpty || bulkStart < bulk.count }

    // MARK: Sockets

    mutating func open(_ slot: Slot, wsi: OpaquePointer, second: Int32) {
        while sockets.count <= Int(slot) { sockets.append(.closed) }
        pending.reserve(slot: slot)
        let fd = Int32(lws_get_socket_fd(wsi))
        precondition(!sockets[Int(slot)].isOpen, "a slot is opened twice")
        sockets[Int(slot)] = Socket(wsi: wsi, fd: fd, isPlain: roost_is_plain(wsi) != 0, lastHeard: second)
    }

    /// Forgets a socket and what was pending for it.
    mutating func close(_ slot: Slot) {
        discardPending(slot)
        if sockets[Int(slot)].isLagging { laggards -= 1 }
        sockets[Int(slot)] = .closed
    }

    mutating func heard(_ slot: Slot, second: Int32) {
        sockets[Int(slot)].lastHeard = second
        sockets[Int(slot)].wasPinged = false
    }

    mutating func wasPinged(_ slot: Slot) {
        sockets[Int(slot)].wasPinged = true
    }

    /// Sends a close frame behind what is pending. The peer answers it and lws closes; the idle timeout is for peers that
    /// do not.
    ///
    /// The frame is ours because one that lws was asked for in its writable callback did not reach the wire: a debugger
    /// showed `shutdown` right behind `lws_close_reason`. Why Debian's 4.1.6 does that was not found out.
    mutating func beginClosing(_ slot: Slot, _ code: CloseCode, reason: StaticString) {
        guard sockets[Int(slot)].isOpen, !sockets[Int(slot)].isClosing else { return }
        send(.close(code, reason: reason), to: slot)
        sockets[Int(slot)].isClosing = true
    }

    // MARK: Lagging

    private mutating func hasCaughtUp(_ slot: Slot) {
        if sockets[Int(slot)].isLagging {
            sockets[Int(slot)].isLagging = false
            laggards -= 1
        }
        if sockets[Int(slot)].isWrittenOff { sockets[Int(slot)].isWrittenOff = false }
    }

    /// Waits for nobody who lags now, until they have caught up by themselves.
    mutating func writeOffLaggards() {
        for slot in sockets.indices where sockets[slot].isLagging {
            sockets[slot].isLagging = false
            sockets[slot].isWrittenOff = true
        }
        laggards = 0
    }

    // MARK: Enqueuing

    mutating func send(_ frame: Frame, to slot: Slot) {
        let message = messages.insert(frame)
        let isPending = append(message, length: frame.bytes.count, to: slot, bulk: false)
        messages.retain(message, times: isPending ? 1 : 0)
    }

    mutating func fanOut(_ frame: Frame, to audience: [Slot], except: Slot?) {
        let message = messages.insert(frame)
        let length = frame.bytes.count
        let inBulk = audience.count > Self.bulkThreshold
        var times = 0
        for slot in audience where slot != except {
            if append(message, length: length, to: slot, bulk: inBulk) { times += 1 }
        }
        messages.retain(message, times: times)
    }

    /// False where the socket is gone or its cap is reached.
    private mutating func append(_ message: Int32, length: Int, to slot: Slot, bulk inBulk: Bool) -> Bool {
        let socket = sockets[Int(slot)]
        guard socket.isOpen, !socket.isClosing else { return false }
        // The limit is on what piles up behind the frame that is being sent, however large that one is.
        guard pending.hasAtMostOne(slot) || pending.bytes(slot) + length <= cap + firstLength(slot) else {
            overflowed.append(slot)
            counters.overflows += 1
            sockets[Int(slot)].isClosing = true
            return false
        }
        let bytes = pending.append(message, length: length, to: slot)
        if bytes > lagMark, !socket.isLagging, !socket.isWrittenOff {
            sockets[Int(slot)].isLagging = true
            laggards += 1
        }
        if socket.isBlocked || socket.isQueued { return true }
        if !inBulk {
            sockets[Int(slot)].isQueued = true
            quick.append(slot)
        } else if !socket.isQueuedInBulk {
            sockets[Int(slot)].isQueuedInBulk = true
            bulk.append(slot)
        }
        return true
    }

    private func firstLength(_ slot: Slot) -> Int {
        pending.first(slot).map { messages.length($0) } ?? 0
    }

    private mutating func discardPending(_ slot: Slot) {
        while let message = pending.first(slot) {
            _ = pending.removeFirst(slot, length: messages.length(message))
            messages.release(message)
        }
    }

    // MARK: Flushing

    /// The end of a turn: serves all of the quick queue and a slice of the bulk one.
    mutating func flush() {
        var index = 0
        while index < quick.count {
            let slot = quick[index]
            index += 1
            guard sockets[Int(slot)].isOpen else { continue }
            sockets[Int(slot)].isQueued = false
            drain(slot)
        }
        quick.removeAll(keepingCapacity: true)
        var writes = 0
        while bulkStart < bulk.count, writes < Self.sliceWrites {
            let slot = bulk[bulkStart]
            bulkStart += 1
            guard sockets[Int(slot)].isOpen else { continue }
            sockets[Int(slot)].isQueuedInBulk = false
            drain(slot)
            writes += 1
        }
        if bulkStart == bulk.count {
            bulk.removeAll(keepingCapacity: true)
            bulkStart = 0
        }
        for slot in overflowed { cutOff(slot) }
        overflowed.removeAll(keepingCapacity: true)
    }

    private mutating func cutOff(_ slot: Slot) {
        let socket = sockets[Int(slot)]
        guard socket.isOpen else { return }
        discardPending(slot)
        lws_set_timeout(socket.wsi, PENDING_TIMEOUT_USER_OK, LWS_TO_KILL_ASYNC)
    }

    /// lws says that the socket takes bytes.
    mutating func writable(_ slot: Slot) {
        guard sockets[Int(slot)].isOpen else { return }
        sockets[Int(slot)].isBlocked = false
        if !pending.isEmpty(slot) { drain(slot) }
    }

    /// Writes what is pending for a socket, until nothing is or the socket takes no more.
    private mutating func drain(_ slot: Slot) {
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
        if pending.bytes(slot) < lagMark { hasCaughtUp(slot) }
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
            return true
        }
        _ = pending.removeFirst(slot, length: length)
        messages.release(message)
        counters.frames += 1
        if socket.isLagging || socket.isWrittenOff { hasCaughtUp(slot) }
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

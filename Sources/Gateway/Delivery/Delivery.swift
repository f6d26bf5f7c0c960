import CWebSockets
import Hub
import Wire

/// Brings frames to the sockets of a loop.
///
/// Enqueuing only records, per socket, which messages are pending. At the end of the loop's turn, every socket with
/// pending messages gets one write with all of them. Fan-outs to many sockets are served in slices, so that a broadcast
/// to 10,000 (90 ms of sends) leaves the loop free for others in between. A socket's frames always keep their order,
/// because there is one list per socket, whichever queue serves it.
///
/// **Overload**: see `Delivery+SlowReaders`. The memory for a slow reader never exceeds its cap.
struct Delivery: ~Copyable {
    /// The most bytes that may be pending for a socket.
    private(set) var cap: Int
    /// Pending bytes above which replaceable frames are left out, and the change feed is held back for the socket.
    private(set) var lagMark: Int
    /// Pending bytes up to which a socket is sent what it missed: enough for the kernel, and little compared to the
    /// cap.
    private(set) var roomMark: Int
    var messages = MessageTable()
    var pending = PendingLists()
    var runs: [FrameRun] = []
    /// Nil if io_uring is unavailable or not wanted.
    var ring: SendRing?
    /// Sockets that will be sent the message at `shared`.
    var together: [Slot] = []
    var shared: Int32 = -1
    var descriptors: [Int32] = []
    var sockets: [Socket] = []
    /// By slot. Separate from the sockets, which are copied and iterated all the time.
    var accounts: [SocketAccount] = []
    /// The hub's reasons for closing sockets, while they close.
    var reasons: [Slot: StaticString] = [:]
    private var quick: [Slot] = []
    private var bulk: [Slot] = []
    private var bulkStart = 0
    private var overflowed: [Slot] = []
    var batch: [Int32] = []
    var scratch: [UInt8] = []
    var scratchBatch: [Int32] = []
    var scratchStart = 0
    var scratchChanges = 0
    var slowReaders = SlowReaders()
    let readers: ChangeReaders
    var resyncs = PendingResyncs()
    var answers = AnswerNews()
    var relieved: [Slot] = []
    var counters = DeliveryCounters()
    var tracer = Tracer()

    private static let bulkThreshold = 256
    private static let sliceWrites = 256

    init(cap: Int, readers: ChangeReaders) {
        self.cap = cap
        self.readers = readers
        lagMark = Self.lagMark(cap)
        roomMark = Self.roomMark(cap)
    }

    /// Replaces the cap. A socket with more pending is checked when its next frame comes.
    mutating func adopt(cap: Int) {
        self.cap = cap
        lagMark = Self.lagMark(cap)
        roomMark = Self.roomMark(cap)
    }

    private static func lagMark(_ cap: Int) -> Int { cap / 4 }

    private static func roomMark(_ cap: Int) -> Int { min(65_536, cap / 8) }

    var hasWork: Bool { !quick.isEmpty || bulkStart < bulk.count || !overflowed.isEmpty }

    // MARK: Sockets

    mutating func open(_ slot: Slot, _ socket: Socket, _ account: SocketAccount) {
        while sockets.count <= Int(slot) {
            sockets.append(.closed)
            accounts.append(SocketAccount())
        }
        pending.reserve(slot: slot)
        precondition(!sockets[Int(slot)].isOpen, "a slot is opened twice")
        sockets[Int(slot)] = socket
        accounts[Int(slot)] = account
        // Frames must follow the head of the answer, or of the upgrade, which is still in the socket pair.
        if let tunnel = socket.tunnel { roost_tunnel_put_behind(tunnel) }
    }

    /// Forgets a socket and its pending messages.
    mutating func close(_ slot: Slot) {
        discardPending(slot)
        hasCaughtUp(slot)
        if sockets[Int(slot)].readsChanges { readers.left() }
        if sockets[Int(slot)].needsResync { resyncs.forget(slot) }
        reasons[slot] = nil
        sockets[Int(slot)] = .closed
    }

    mutating func heard(_ slot: Slot, second: Int32) {
        sockets[Int(slot)].lastHeard = second
        sockets[Int(slot)].wasPinged = false
    }

    mutating func wasPinged(_ slot: Slot) {
        sockets[Int(slot)].wasPinged = true
    }

    /// Sends this frame, and then the messages held back for the socket.
    mutating func release(_ slot: Slot, _ frame: Frame) {
        guard sockets[Int(slot)].isOpen, sockets[Int(slot)].isHeld else { return }
        closeRuns()
        let message = messages.insert(frame)
        pending.prepend(message, length: frame.bytes.count, to: slot)
        messages.retain(message, times: 1)
        sockets[Int(slot)].isHeld = false
        sockets[Int(slot)].isBlocked = false
        guard !sockets[Int(slot)].isQueued else { return }
        sockets[Int(slot)].isQueued = true
        quick.append(slot)
    }

    /// Ends an answer after its pending messages.
    ///
    /// - Parameter frame: the last frame, if there is one.
    mutating func endAnswer(_ slot: Slot, _ frame: Frame?) {
        guard sockets[Int(slot)].isOpen, !sockets[Int(slot)].isClosing else { return }
        if let frame {
            let message = messages.insert(frame)
            let isPending = append(
                message, length: frame.bytes.count, to: slot, bulk: false, isChange: false, isLast: true)
            messages.retain(message, times: isPending ? 1 : 0)
        }
        sockets[Int(slot)].isClosing = true
        noteEnd(ofAnswer: slot)
    }

    mutating func noteEnd(ofAnswer slot: Slot) {
        let socket = sockets[Int(slot)]
        if socket.isAnswer, socket.isClosing, !socket.isDismissed, pending.isEmpty(slot) { answers.ended.append(slot) }
    }

    /// Sends a close frame after the pending messages. The peer's answer ends the connection; `closingGoesOn` handles
    /// peers that do not answer.
    ///
    /// We send the frame ourselves, because one requested from lws in its writable callback did not reach the wire: a
    /// debugger showed `shutdown` right after `lws_close_reason`. Why Debian's 4.1.6 does that was not found out.
    mutating func beginClosing(_ slot: Slot, _ code: CloseCode, reason: StaticString) {
        guard sockets[Int(slot)].isOpen, !sockets[Int(slot)].isClosing else { return }
        let frame = Frame.close(code, reason: reason)
        if !tracer.isIdle { trace(frame, to: [slot], except: nil) }
        let message = messages.insert(frame)
        let isPending = append(message, length: frame.bytes.count, to: slot, bulk: false, isChange: false, isLast: true)
        messages.retain(message, times: isPending ? 1 : 0)
        sockets[Int(slot)].isClosing = true
        sockets[Int(slot)].closeCode = code.rawValue
        sockets[Int(slot)].endCode = code.rawValue
        accounts[Int(slot)].bytesSeen = Int(roost_bytes_acked(sockets[Int(slot)].transport))
        reasons[slot] = reason
    }

    mutating func sentAcknowledgementPing(_ slot: Slot, second: Int32) {
        sockets[Int(slot)].hasUnacknowledged = false
        sockets[Int(slot)].lastAcknowledgementPing = second
    }

    /// The pending bytes of all sockets together.
    var pendingBytes: Int {
        sockets.indices.reduce(0) { $0 + (sockets[$1].isOpen ? pending.bytes(Slot($1)) : 0) }
    }

    // MARK: Enqueuing

    mutating func send(_ frame: Frame, to slot: Slot, _ kind: FrameKind = .message) {
        if !tracer.isIdle { trace(frame, to: [slot], except: nil) }
        let message = messages.insert(frame)
        if kind.needsAcknowledgement { sockets[Int(slot)].hasUnacknowledged = true }
        let isPending = append(
            message, length: frame.bytes.count, to: slot, bulk: false, isChange: kind == .change)
        messages.retain(message, times: isPending ? 1 : 0)
    }

    mutating func fanOut(_ frame: Frame, to audience: [Slot], except: Slot?, _ kind: FrameKind = .message) {
        if !tracer.isIdle { trace(frame, to: audience, except: except) }
        if continueRun(frame, audience, except: except, kind) { return }
        let message = messages.insert(frame)
        let length = frame.bytes.count
        let inBulk = audience.count > Self.bulkThreshold
        let (isChange, needsAcknowledgement) = (kind == .change, kind.needsAcknowledgement)
        var times = 0
        if case .step(let state) = kind {
            for slot in audience where slot != except && !spares(slot, state) {
                if append(message, length: length, to: slot, bulk: inBulk, isChange: false) { times += 1 }
            }
        } else {
            for slot in audience where slot != except {
                if needsAcknowledgement { sockets[Int(slot)].hasUnacknowledged = true }
                if append(message, length: length, to: slot, bulk: inBulk, isChange: isChange) { times += 1 }
            }
            if times > 0 { beginRun(message, audience, except: except, kind) }
        }
        messages.retain(message, times: times)
    }

    /// False if the socket is gone or its cap is reached.
    private mutating func append(
        _ message: Int32, length: Int, to slot: Slot, bulk inBulk: Bool, isChange: Bool, isLast: Bool = false
    ) -> Bool {
        guard sockets[Int(slot)].isOpen, !sockets[Int(slot)].isClosing else { return false }
        if !isLast, !fits(length, slot) {
            // The messages of this turn were not offered to the socket yet, so try once before judging the socket slow.
            drain(slot)
            guard fits(length, slot) else {
                overflowed.append(slot)
                sockets[Int(slot)].isClosing = true
                sockets[Int(slot)].isDismissed = true
                return false
            }
        }
        if !runs.isEmpty { closeRun(endingAt: slot) }
        let socket = sockets[Int(slot)]
        if isChange, !socket.readsChanges {
            sockets[Int(slot)].readsChanges = true
            readers.joined()
        }
        let bytes = pending.append(message, length: length, to: slot)
        if bytes > lagMark, !socket.isBehind || isChange && !socket.isLagging { fellBehind(slot) }
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

    /// The cap limits what piles up behind the message being sent, however large that message is.
    private func fits(_ length: Int, _ slot: Slot) -> Bool {
        pending.hasAtMostOne(slot) || pending.bytes(slot) + length <= cap + firstLength(slot)
    }

    private func firstLength(_ slot: Slot) -> Int {
        pending.first(slot).map { messages.length($0) - pending.taken(slot) } ?? 0
    }

    mutating func discardPending(_ slot: Slot) {
        closeRuns()
        while let message = pending.first(slot) {
            _ = pending.removeFirst(slot, length: messages.length(message))
            messages.release(message)
        }
    }

    // MARK: Flushing

    /// Ends a turn: serves the whole quick queue and a slice of the bulk queue.
    mutating func flush() {
        closeRuns()
        var index = 0
        while index < quick.count {
            let slot = quick[index]
            index += 1
            guard sockets[Int(slot)].isOpen else { continue }
            sockets[Int(slot)].isQueued = false
            serve(slot)
        }
        // A socket may be in both queues.
        sendTogether()
        quick.removeAll(keepingCapacity: true)
        var writes = 0
        while bulkStart < bulk.count, writes < Self.sliceWrites {
            let slot = bulk[bulkStart]
            bulkStart += 1
            guard sockets[Int(slot)].isOpen else { continue }
            sockets[Int(slot)].isQueuedInBulk = false
            serve(slot)
            writes += 1
        }
        sendTogether()
        if bulkStart == bulk.count {
            bulk.removeAll(keepingCapacity: true)
            bulkStart = 0
        }
        for slot in overflowed { dismiss(slot) }
        overflowed.removeAll(keepingCapacity: true)
    }

    /// Called when the socket takes bytes again.
    mutating func writable(_ slot: Slot) {
        guard sockets[Int(slot)].isOpen, !sockets[Int(slot)].isHeld else { return }
        sockets[Int(slot)].isBlocked = false
        if !pending.isEmpty(slot) { drain(slot) }
    }
}

/// Answers that their connections' owner must handle at the end of the turn.
struct AnswerNews {
    /// Answers whose sockets take no more for now.
    var blocked: [Slot] = []
    /// Answers that were sent completely, including their end.
    var ended: [Slot] = []
    /// Answers whose connections must be broken, because pending bytes were dropped.
    var cut: [Slot] = []

    var isEmpty: Bool { blocked.isEmpty && ended.isEmpty && cut.isEmpty }
}

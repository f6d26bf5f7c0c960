import CWebSockets
import Glibc
import HTTP
import Hub

/// One HTTP connection of a loop: its socket, its libuv handle, and the state in `HTTPConnection`. Belongs to
/// `HTTPServer`.
final class HTTPPeer {
    let fd: Int32
    /// The tunnel whose plain end is `fd`; nil without TLS.
    let tunnel: TLSTunnel?
    /// The client's own socket, for queries about the client.
    var transport: Int32 { tunnel?.client ?? fd }
    var isOps: Bool { arrival == nil }
    /// Nil on the operator's port.
    var arrival: Arrival?
    /// The loop's second in which it was accepted.
    let since: Int32
    /// Read ten times per request, so exclusivity checks would be noticeable. Its methods make no callbacks and run
    /// only on the loop's thread, so accesses cannot overlap.
    @exclusivity(unchecked) var connection: HTTPConnection
    /// The current request.
    var call: HTTPCall?
    /// The number of a pending answer; zero if there is none.
    var exchange = 0
    /// The slot of a streaming answer.
    var slot: Slot?
    /// The index in the server's list.
    var place: Int
    private(set) var isOpen = true
    /// The socket is readable, but waits for its turn; libuv does not watch it until then.
    var isWaiting = false
    /// Lives as long as the process. Reference counting would cost about 0.2 µs of a short request.
    private unowned(unsafe) let loop: EventLoop
    /// Nil until the first wait.
    private var poll: UnsafeMutablePointer<uv_poll_t>?
    private var events: Int32 = 0
    private var accounted = 0

    init(
        fd: Int32, by tunnel: TLSTunnel?, _ arrival: Arrival?, _ connection: consuming HTTPConnection, loop: EventLoop,
        place: Int
    ) {
        self.fd = fd
        self.tunnel = tunnel
        self.arrival = arrival
        since = loop.second
        self.connection = connection
        self.loop = loop
        self.place = place
    }

    /// Waits for input, which includes the connection's end, and for room if there is output.
    ///
    /// - Returns: false if libuv fails.
    func listen() -> Bool {
        let wanted =
            (connection.wantsInput ? Int32(UV_READABLE.rawValue) : 0)
            | (connection.hasOutput || isBlocked ? Int32(UV_WRITABLE.rawValue) : 0)
        guard wanted != events else { return true }
        events = wanted
        guard let poll = self.poll ?? makePoll() else { return false }
        return uv_poll_start(poll, wanted) { handle, status, events in
            guard let data = handle?.pointee.data else { return }
            let peer = Unmanaged<HTTPPeer>.fromOpaque(data).takeUnretainedValue()
            peer.loop.http.happened(events, status, to: peer)
        } == 0
    }

    /// Suspends libuv's watch until the socket is read, because epoll would report it in every turn.
    func awaitTurn() {
        isWaiting = true
        events = 0
        if let poll { uv_poll_stop(poll) }
    }

    /// True if an answer waits for room in the socket itself; a tunnel reports its room by itself.
    private var isBlocked: Bool {
        tunnel == nil && slot.map { loop.delivery.sockets[Int($0)] }.map { $0.isBlocked && !$0.isHeld } ?? false
    }

    private func makePoll() -> UnsafeMutablePointer<uv_poll_t>? {
        let poll = UnsafeMutablePointer<uv_poll_t>.allocate(capacity: 1)
        guard uv_poll_init(loop.libuv.pointer, poll, fd) == 0 else {
            poll.deallocate()
            return nil
        }
        poll.pointee.data = Unmanaged.passUnretained(self).toOpaque()
        self.poll = poll
        return poll
    }

    /// Sends as much output as the socket takes.
    ///
    /// - Returns: false if the client is gone.
    func flush(at second: Int32) -> Bool {
        while connection.hasOutput {
            let sent = connection.output.withUnsafeBytes {
                send(fd, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT))
            }
            switch SocketWriter.outcome(sent >= 0 ? sent : -Int(errno)) {
            case .wrote(0): return true
            case .wrote(let count): connection.sent(count, at: second)
            case .gone: return false
            }
        }
        return true
    }

    // MARK: Counting

    /// True if the connection is unused, and not merely because it is new.
    var isIdle: Bool { hasNothingToDo && loop.second - since >= Displacement.grace }
    var hasNothingToDo: Bool { connection.isIdle && !isWaiting }

    func requestBegins(_ head: HTTPHead) -> Admission.Denial? {
        guard var known = arrival, known.isProxied || known.isOver else { return nil }
        let denial = loop.admission.requestBegins(head, by: &known)
        arrival = known
        if let denial { loop.note(denial) }
        return denial
    }

    /// Whether the connection counts for its address.
    var isCounted: Bool { arrival?.counted != nil }

    /// - Parameter closes: no request follows.
    func requestEnds(closes: Bool) {
        guard var known = arrival, closes || known.isProxied else { return }
        loop.admission.requestEnds(by: &known)
        if closes { loop.admission.depart(&known) }
        arrival = known
    }

    /// - Returns: false if all connections together store too much.
    func account(to unfinished: UnfinishedBytes) -> Bool {
        let held = connection.heldBytes
        guard held != accounted else { return true }
        let fits = unfinished.change(by: held - accounted)
        accounted = held
        return fits || held <= UnfinishedBytes.free
    }

    /// Detaches the socket from libuv, without closing it.
    func stop(_ unfinished: UnfinishedBytes) {
        isOpen = false
        requestEnds(closes: true)
        _ = unfinished.change(by: -accounted)
        accounted = 0
        guard let poll else { return }
        self.poll = nil
        poll.withMemoryRebound(to: uv_handle_t.self, capacity: 1) { handle in
            uv_close(handle) { $0?.withMemoryRebound(to: uv_poll_t.self, capacity: 1) { $0.deallocate() } }
        }
    }
}

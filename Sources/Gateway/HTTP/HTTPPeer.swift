import CWebSockets
import Glibc
import HTTP
import Hub

/// One HTTP connection of a loop: its socket, what libuv knows of it, and the state that `HTTPConnection` keeps. Belongs to
/// `HTTPServer`.
final class HTTPPeer {
    let fd: Int32
    /// Of which `fd` is the plain end; nil without TLS.
    let tunnel: TLSTunnel?
    /// The client's own socket, for questions about the client.
    var transport: Int32 { tunnel?.client ?? fd }
    var isOps: Bool { arrival == nil }
    /// Nil on the operator's port.
    var arrival: Arrival?
    /// The loop's second in which it came.
    let since: Int32
    /// Looked at ten times for each request. Its methods call nobody back and only the loop's thread comes here, so no two
    /// accesses can overlap.
    @exclusivity(unchecked) var connection: HTTPConnection
    /// The request in hand.
    var call: HTTPCall?
    /// Number of the answer that comes later; zero where none does.
    var exchange = 0
    /// Place of an answer that goes on, among the sockets.
    var slot: Slot?
    /// Place in the server's list.
    var place: Int
    private(set) var isOpen = true
    /// It can be read, and is not listened to until then.
    var isWaiting = false
    /// Lives as long as the process. Counting who holds it costs some 0.2 µs of a short request.
    private unowned(unsafe) let loop: EventLoop
    /// Nil until there was a need to wait.
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

    /// Waits for what the connection needs: bytes, so that its end is noticed, and room where something is to be sent.
    ///
    /// - Returns: false where libuv cannot.
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

    /// libuv says nothing more of it until it is read: epoll would find it in each turn.
    func awaitTurn() {
        isWaiting = true
        events = 0
        if let poll { uv_poll_stop(poll) }
    }

    /// An answer waits for room, and not for that of a tunnel, which says so itself.
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

    /// Sends what the socket takes.
    ///
    /// - Returns: false where the client is gone.
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

    // MARK: What it is counted for

    /// It has nothing to do, and not only because it has just come.
    var isIdle: Bool { hasNothingToDo && loop.second - since >= Displacement.grace }
    var hasNothingToDo: Bool { connection.isIdle && !isWaiting }

    func requestBegins(_ head: HTTPHead) -> Admission.Denial? {
        guard var known = arrival, known.isProxied || known.isOver else { return nil }
        let denial = loop.admission.requestBegins(head, by: &known)
        arrival = known
        if let denial { loop.note(denial) }
        return denial
    }

    /// Whether its address is.
    var isCounted: Bool { arrival?.counted != nil }

    /// - Parameter closes: no request follows.
    func requestEnds(closes: Bool) {
        guard var known = arrival, closes || known.isProxied else { return }
        loop.admission.requestEnds(by: &known)
        if closes { loop.admission.depart(&known) }
        arrival = known
    }

    /// - Returns: false where all connections together hold too much.
    func account(to unfinished: UnfinishedBytes) -> Bool {
        let held = connection.heldBytes
        guard held != accounted else { return true }
        let fits = unfinished.change(by: held - accounted)
        accounted = held
        return fits || held <= UnfinishedBytes.free
    }

    /// libuv forgets the socket; it is not closed.
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

import CWebSockets
import Glibc
import Wire

/// Accepts connections.
///
/// Debian's lws cannot share a port between contexts (its SO_REUSEPORT needs a build with several service threads), so
/// every loop listens by itself and keeps what it accepts. A Unix domain socket cannot be shared like that: one loop
/// accepts for all, in rotation.
final class Listener {
    enum Kind {
        /// The port of clients' WebSockets.
        case clients
        /// The same without TLS, for a proxy on this machine.
        case socket(UnixSocketFile)
        /// The operator's port.
        case operators
    }
    private let fd: Int32
    private let kind: Kind
    /// The loop that gets the next connection.
    private var turn = 0
    private unowned let loop: EventLoop
    private let poll: UnsafeMutablePointer<uv_poll_t>
    private var isClosed = false
    /// Connections held back because their addresses keep failing.
    private var held: [(fd: Int32, arrival: Arrival, until: UInt64)] = []

    convenience init(host: String, port: Int, _ kind: Kind, loop: EventLoop) throws(GatewayError) {
        let fd = roost_listen(host, Int32(port), 4096)
        guard fd >= 0 else {
            throw .cannotListen(host: host, port: port, reason: String(cString: strerror(errno)))
        }
        self.init(fd: fd, kind, loop: loop)
    }

    convenience init(path: String, mode: Int, loop: EventLoop) throws(GatewayError) {
        let (file, fd) = try UnixSocketFile.listen(at: path, mode: mode)
        self.init(fd: fd, .socket(file), loop: loop)
    }

    private init(fd: Int32, _ kind: Kind, loop: EventLoop) {
        self.fd = fd
        self.kind = kind
        self.loop = loop
        poll = .allocate(capacity: 1)
        uv_poll_init(loop.libuv.pointer, poll, fd)
        poll.pointee.data = Unmanaged.passUnretained(self).toOpaque()
        accept()
    }

    private func accept() {
        guard !isClosed else { return }
        uv_poll_start(poll, Int32(UV_READABLE.rawValue)) { handle, _, _ in
            guard let data = handle?.pointee.data else { return }
            Unmanaged<Listener>.fromOpaque(data).takeUnretainedValue().acceptTurnful()
        }
    }

    /// How many connections to accept in a turn: a storm of new ones must leave time for those that are open. The rest
    /// wait in the kernel's queue, before their handshake timeout starts.
    private var turnful: Int {
        // A handshake takes half a millisecond of CPU, ten times the cost of a connection without TLS.
        if case .clients = kind, loop.tunnels != nil { 4 } else { 16 }
    }

    private func acceptTurnful() {
        for _ in 0..<turnful {
            let connection = roost_accept(fd)
            guard connection >= 0 else { return rest(after: errno) }
            guard !isOps else {
                loop.http.accept(connection, nil)
                continue
            }
            guard let arrival = loop.takeIn(connection) else {
                Glibc.close(connection)
                continue
            }
            if isHeldBack(arrival) {
                hold(connection, arrival)
            } else {
                adopt(connection, arrival)
            }
        }
    }

    /// Whether to hold a connection back. Proxies are exempt, because their clients are known only from their requests.
    private func isHeldBack(_ arrival: Arrival) -> Bool {
        let failing = loop.limits.failing
        guard case .clients = kind, !failing.isEmpty, let address = arrival.address else { return false }
        return failing.keepsFailing(Name(address.text))
    }

    /// Milliseconds.
    private static let restingTime: UInt64 = 100
    /// In seconds of the loop; one warning a minute is enough.
    private var silentUntil: Int32 = 0

    /// Pauses accepting if there are no free descriptors, or no memory for one. The connection stays in the kernel's
    /// queue and the socket readable, so polling would keep the loop busy for nothing.
    private func rest(after error: Int32) {
        guard [EMFILE, ENFILE, ENOBUFS, ENOMEM].contains(error), !isClosed else { return }
        if loop.second >= silentUntil {
            silentUntil = loop.second + 60
            let reason = String(cString: strerror(error))
            loop.logger.warning(
                "cannot accept connections (\(reason)); raise the limit of open files (ulimit -n), or lower limits.connections"
            )
        }
        uv_poll_stop(poll)
        restTimer.start(after: Self.restingTime)
    }

    private func adopt(_ connection: Int32, _ arrival: Arrival) {
        switch kind {
        case .clients: adoptClient(connection, arrival)
        case .operators: loop.http.accept(connection, nil)
        case .socket:
            turn = (turn + 1) % (loop.siblings.count + 1)
            if turn == 0 {
                loop.http.accept(connection, arrival)
            } else {
                loop.siblings[turn - 1].post(.take(connection, arrival))
            }
        }
    }

    private func adoptClient(_ connection: Int32, _ arrival: Arrival) {
        guard let tunnels = loop.tunnels else { return loop.http.accept(connection, arrival) }
        guard let (tunnel, plain) = tunnels.open(connection) else {
            var arrival = arrival
            loop.admission.depart(&arrival)
            loop.counters.unheard += 1
            Glibc.close(connection)
            return
        }
        loop.http.accept(plain, arrival, by: tunnel)
    }

    private func hold(_ connection: Int32, _ arrival: Arrival) {
        held.append((connection, arrival, uv_hrtime() / 1_000_000 + FailingAddresses.delay))
        guard held.count == 1 else { return }
        timer.start(after: FailingAddresses.delay)
    }

    private func release() {
        let now = uv_hrtime() / 1_000_000
        while let first = held.first, first.until <= now {
            held.removeFirst()
            adopt(first.fd, first.arrival)
        }
        if let next = held.first { timer.start(after: next.until - now) }
    }

    private lazy var timer = LoopTimer(loop.libuv) { [unowned self] in release() }
    private lazy var restTimer = LoopTimer(loop.libuv) { [unowned self] in accept() }

    var isOps: Bool {
        if case .operators = kind { true } else { false }
    }

    func close() {
        guard !isClosed else { return }
        isClosed = true
        uv_poll_stop(poll)
        if case .socket(let file) = kind { file.remove() }
        for var connection in held {
            loop.admission.depart(&connection.arrival)
            Glibc.close(connection.fd)
        }
        held = []
        Glibc.close(fd)
    }
}

/// The file of the Unix domain socket on which the hub listens, for a proxy on the same machine.
struct UnixSocketFile {
    let path: String
    private var device: UInt = 0
    private var inode: UInt = 0

    /// Starts to listen at a path. The descriptor belongs to the caller.
    static func listen(at path: String, mode: Int) throws(GatewayError) -> (file: UnixSocketFile, descriptor: Int32) {
        let descriptor = roost_listen_unix(path, UInt32(mode), 4096)
        guard descriptor >= 0 else { throw .cannotListenAt(path: path, problem: errno) }
        var file = UnixSocketFile(path: path)
        // If this fails, the file is gone, and there will be nothing to remove.
        roost_identify(path, &file.device, &file.inode)
        return (file, descriptor)
    }

    private init(path: String) {
        self.path = path
    }

    /// Removes the file. Called before the descriptor is closed, because a hub that starts afterwards creates a file of
    /// its own.
    func remove() {
        roost_unlink_unix(path, device, inode)
    }
}

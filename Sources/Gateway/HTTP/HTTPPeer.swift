import CWebSockets
import Glibc
import HTTP

/// One HTTP connection of a loop: its socket, what libuv knows of it, and the state that `HTTPConnection` keeps. Belongs to
/// `HTTPServer`.
final class HTTPPeer {
    let fd: Int32
    let isOps: Bool
    var connection: HTTPConnection
    /// The request in hand.
    var call: HTTPCall?
    /// Of the answer that comes later; zero where none does.
    var exchange = 0
    /// In the server's list.
    var place: Int
    private(set) var isOpen = true
    private unowned let loop: EventLoop
    /// Nil until there was a need to wait.
    private var poll: UnsafeMutablePointer<uv_poll_t>?
    private var events: Int32 = 0
    private var accounted = 0

    init(fd: Int32, isOps: Bool, _ connection: HTTPConnection, loop: EventLoop, place: Int) {
        self.fd = fd
        self.isOps = isOps
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
            | (connection.hasOutput ? Int32(UV_WRITABLE.rawValue) : 0)
        guard wanted != events else { return true }
        events = wanted
        guard let poll = self.poll ?? makePoll() else { return false }
        return uv_poll_start(poll, wanted) { handle, status, events in
            guard let data = handle?.pointee.data else { return }
            let peer = Unmanaged<HTTPPeer>.fromOpaque(data).takeUnretainedValue()
            peer.loop.http.happened(events, status, to: peer)
        } == 0
    }

    private func makePoll() -> UnsafeMutablePointer<uv_poll_t>? {
        let poll = UnsafeMutablePointer<uv_poll_t>.allocate(capacity: 1)
        guard uv_poll_init(loop.loop, poll, fd) == 0 else {
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
        _ = unfinished.change(by: -accounted)
        accounted = 0
        guard let poll else { return }
        self.poll = nil
        poll.withMemoryRebound(to: uv_handle_t.self, capacity: 1) { handle in
            uv_close(handle) { $0?.withMemoryRebound(to: uv_poll_t.self, capacity: 1) { $0.deallocate() } }
        }
    }
}

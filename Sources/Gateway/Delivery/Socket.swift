import CWebSockets
import Hub

/// One WebSocket of a loop, or a streaming HTTP answer. Trivial to copy, so that iterating over thousands needs no
/// reference counting.
struct Socket {
    /// Nil for an answer, which libwebsockets knows nothing of.
    let wsi: OpaquePointer?
    /// Negative once the socket is closed and its slot free.
    let fd: Int32
    /// Encrypts output, because `fd` is its plain end (`TLSTunnel`); nil without TLS.
    let tunnel: OpaquePointer?
    /// Seconds on the loop's clock when the peer was last heard; for an answer, when bytes were last sent.
    var lastHeard: Int32
    var wasPinged = false
    /// Changes or kept messages were sent since the last acknowledgement ping.
    var hasUnacknowledged = false
    /// Seconds on the loop's clock.
    var lastAcknowledgementPing: Int32 = 0
    /// Nothing is written until lws, or libuv for an answer, reports that the socket takes bytes again.
    var isBlocked = false
    /// For an answer: nothing is sent yet, so that its beginning can go first.
    var isHeld = false
    /// Queued among the sockets served at once, or among those served in slices.
    var isQueued = false
    var isQueuedInBulk = false
    /// A row change was sent to the socket.
    var readsChanges = false
    /// The pending bytes exceeded the lag mark.
    var isBehind = false
    /// The feed waits for the socket.
    var isLagging = false
    /// The socket did not catch up in time; the feed no longer waits for it.
    var isWrittenOff = false
    /// The socket took bytes since the last check.
    var hasTaken = false
    /// Output waits until the socket has room.
    var isAwaited = false
    /// Presence or typing was left out, and the state must be sent instead.
    var needsResync = false
    /// A close frame is queued, or the socket will be cut off; nothing else is queued any more.
    var isClosing = false
    /// The pending messages were dropped.
    var isDismissed = false
    /// Both close frames were exchanged, or none will be; nothing more is sent, not even a close frame.
    var isSettled = false
    /// The code of our close frame; zero if there is none.
    var closeCode: UInt16 = 0
    /// The code of the first close frame from either side (RFC 6455, section 7.1.5; 1006 stands for none).
    var endCode: UInt16 = 1006
    /// Seconds since the hub began to close the socket, and those in a row without progress.
    var closingSeconds: UInt8 = 0
    var stillSeconds: UInt8 = 0

    var isOpen: Bool { fd >= 0 }

    /// The client's own socket, for queries about the client.
    var transport: Int32 { tunnel.map { roost_tunnel_client($0) } ?? fd }

    var isAnswer: Bool { wsi == nil }

    /// True while lws has the rest of a frame, which must go first.
    var isHeldByLWS: Bool { wsi.map { lws_partial_buffered($0) != 0 } ?? false }

    static var closed: Socket { Socket(wsi: nil, fd: -1, tunnel: nil, lastHeard: 0) }
}

/// The traffic of one socket, for the log line about its end and for the operator: 64 bytes per connection, and two
/// additions per write.
struct SocketAccount {
    /// Nil if the peer was gone before its address was read, or a trusted proxy did not name it.
    var peer: IPAddress?
    /// Seconds on the loop's clock.
    var openedAt: Int32 = 0
    /// Messages and protocol frames; the counts wrap around at four billion.
    var messagesIn: UInt32 = 0
    var messagesOut: UInt32 = 0
    /// Payload bytes of incoming messages; outgoing frames include their headers.
    var bytesIn = 0
    var bytesOut = 0
    /// For an answer, the bytes sent at the last check; for a closing socket, the bytes acknowledged.
    var bytesSeen = 0
    /// The number of connections that the loop had accepted, up to this one; see `ConnectionID`.
    var serial = 0

    init() {}

    init(peer: IPAddress?, second: Int32, serial: Int) {
        self.peer = peer
        self.serial = serial
        openedAt = second
    }
}

import CWebSockets
import Hub

/// One WebSocket of a loop, or an HTTP answer that goes on. Trivial to copy, so that walking over thousands costs no reference
/// counting.
struct Socket {
    /// Nil for an answer, of which libwebsockets knows nothing.
    let wsi: OpaquePointer?
    /// Negative once the socket is closed and its slot free.
    let fd: Int32
    /// Encrypts what is sent, for `fd` is its plain end (`TLSTunnel`); nil without TLS.
    let tunnel: OpaquePointer?
    /// Seconds on the loop's clock when the peer was last heard; of an answer, when something was last sent.
    var lastHeard: Int32
    var wasPinged = false
    /// Changes or kept messages were sent since the last ping that acknowledges.
    var hasUnacknowledged = false
    /// Seconds on the loop's clock.
    var lastAcknowledgementPing: Int32 = 0
    /// lws, or libuv for an answer, will say when the socket takes bytes again; nothing is written before.
    var isBlocked = false
    /// Of an answer: nothing of it may be sent yet, so that what it is to begin with can go first.
    var isHeld = false
    /// In the queue of those served first, or of those served in slices.
    var isQueued = false
    var isQueuedInBulk = false
    /// A row change was sent to it.
    var readsChanges = false
    /// Its pending bytes passed the lag mark.
    var isBehind = false
    /// The feed waits for it.
    var isLagging = false
    /// It did not catch up in the time it was given; nobody waits for it any more.
    var isWrittenOff = false
    /// Took bytes since that was last looked at.
    var hasTaken = false
    /// Something waits until it has room.
    var isAwaited = false
    /// It was spared presence or typing, and is to be sent the state instead.
    var needsResync = false
    /// A close frame is on its way, or the socket is to be cut off; nothing more is sent.
    var isClosing = false
    /// What waited for it was thrown away.
    var isDismissed = false
    /// Both close frames are said, or no more will be; nothing is sent, not even those.
    var isSettled = false
    /// Of our close frame; zero if there is none.
    var closeCode: UInt16 = 0
    /// Of the first close frame, whoever sent it (RFC 6455, section 7.1.5; 1006 stands for none).
    var endCode: UInt16 = 1006
    /// Seconds since the hub began to close it, and those of them in which it took nothing.
    var closingSeconds: UInt8 = 0
    var stillSeconds: UInt8 = 0

    var isOpen: Bool { fd >= 0 }

    /// The client's own socket, for questions about the client.
    var transport: Int32 { tunnel.map { roost_tunnel_client($0) } ?? fd }

    var isAnswer: Bool { wsi == nil }

    /// What lws has of a frame goes before all else.
    var isHeldByLWS: Bool { wsi.map { lws_partial_buffered($0) != 0 } ?? false }

    static var closed: Socket { Socket(wsi: nil, fd: -1, tunnel: nil, lastHeard: 0) }
}

/// What went over one socket, for the line that tells of its end and for the operator: 64 bytes beside every connection,
/// and two additions for every write.
struct SocketAccount {
    /// Nil where the peer was gone before it was asked, or a trusted proxy did not name it.
    var peer: IPAddress?
    /// Seconds on the loop's clock.
    var openedAt: Int32 = 0
    /// Messages, and frames of the protocol; they begin anew at four billion.
    var messagesIn: UInt32 = 0
    var messagesOut: UInt32 = 0
    /// Of messages in, of frames with their heads out.
    var bytesIn = 0
    var bytesOut = 0
    /// Of an answer, the bytes that were out when that was last looked at; of a socket that is closing, those that were acknowledged.
    var bytesSeen = 0
    /// How many connections the loop had taken when it took this one; see `ConnectionID`.
    var serial = 0

    init() {}

    init(peer: IPAddress?, second: Int32, serial: Int) {
        self.peer = peer
        self.serial = serial
        openedAt = second
    }
}

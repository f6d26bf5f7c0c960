import CWebSockets
import Hub

/// One WebSocket of a loop. Trivial to copy, so that walking over thousands costs no reference counting.
struct Socket {
    /// Nil once the socket is closed and its slot free.
    let wsi: OpaquePointer?
    let fd: Int32
    /// Neither TLS nor an extension stands between a frame and the wire.
    let isPlain: Bool
    /// Seconds on the loop's clock when the peer was last heard.
    var lastHeard: Int32
    var wasPinged = false
    /// lws will say when the socket takes bytes again; nothing is written before.
    var isBlocked = false
    /// In the queue of those served first, or of those served in slices.
    var isQueued = false
    var isQueuedInBulk = false
    /// Its pending bytes passed the mark at which the feed is asked to wait for it.
    var isLagging = false
    /// It did not catch up in the time it was given; nobody waits for it any more.
    var isWrittenOff = false
    /// A close frame is on its way, or the socket is to be cut off; nothing more is sent.
    var isClosing = false

    var isOpen: Bool { wsi != nil }

    static var closed: Socket { Socket(wsi: nil, fd: -1, isPlain: true, lastHeard: 0) }
}

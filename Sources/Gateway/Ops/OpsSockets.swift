import CWebSockets
import Wire

/// The WebSockets of the operator's port. They are few, so they go all through lws, and nothing of them touches the
/// clients' sockets. Confined to the loop that listens on that port.
struct OpsSockets {
    struct Line {
        let wsi: OpaquePointer
        /// Frames that the socket has not taken.
        var pending: [[UInt8]] = []
        var pendingBytes = 0
        /// Pieces of a message.
        var partial: [UInt8] = []
        /// In seconds of the loop.
        var lastHeard: Int32
    }

    var lines: [OpsSocket.ID: Line] = [:]
    private var last: OpsSocket.ID = 0

    static let most = 64
    static let maximumMessageBytes = 65_536
    /// What a page that does not read may have waiting.
    static let maximumPendingBytes = 8_388_608
    /// Seconds; a Phoenix client sends a heartbeat every 30 at the latest.
    static let idleTimeout: Int32 = 75

    mutating func open(_ wsi: OpaquePointer, second: Int32) -> OpsSocket.ID {
        last += 1
        lines[last] = Line(wsi: wsi, lastHeard: second)
        return last
    }

    /// What lws keeps for a WebSocket is a slot's number plus one for clients, and for these the id below zero.
    static func id(_ user: UnsafeMutableRawPointer?) -> OpsSocket.ID? {
        guard let number = user?.load(as: Int32.self), number < 0 else { return nil }
        return -number
    }

    static func store(_ id: OpsSocket.ID, in user: UnsafeMutableRawPointer) {
        user.storeBytes(of: -id, as: Int32.self)
    }
}

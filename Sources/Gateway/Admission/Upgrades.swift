import CWebSockets
import HTTP
import Hub
import Wire

/// An admitted upgrade, until lws reports that the WebSocket is open, or gone.
enum PendingUpgrade {
    case client(Admission.Client)
    case operators(HTTPRequest)
}

/// The admitted upgrades of a loop that are not open yet, by lws's connection.
struct PendingUpgrades {
    private var upgrades: [OpaquePointer: PendingUpgrade] = [:]
    /// The upgrade of the socket that lws is taking over.
    private var handedOver: PendingUpgrade?

    func has(_ wsi: OpaquePointer) -> Bool { upgrades[wsi] != nil }

    mutating func take(_ wsi: OpaquePointer) -> PendingUpgrade? {
        upgrades.isEmpty ? nil : upgrades.removeValue(forKey: wsi)
    }

    /// Called before a socket is given to lws, which calls `adopted` while it takes it over.
    mutating func beginHandOver(_ upgrade: PendingUpgrade) { handedOver = upgrade }

    /// Called when lws has created a connection for the socket. lws handles the head at once, or later if it has no
    /// room for headers.
    mutating func adopted(_ wsi: OpaquePointer) {
        if let upgrade = handedOver.take() { upgrades[wsi] = upgrade }
    }

    /// - Returns: the upgrade, if lws did not take the socket, for want of memory or room.
    mutating func endHandOver() -> PendingUpgrade? { handedOver.take() }
}

/// From a request for a WebSocket to the WebSocket.
extension EventLoop {
    enum UpgradeVerdict {
        case admitted(PendingUpgrade)
        case refused(HTTPResponse)
    }

    /// Judges an upgrade. If it is admitted, it takes over the connection's count.
    func judgeUpgrade(_ head: HTTPHead, of peer: HTTPPeer) -> UpgradeVerdict {
        guard !peer.isOps else { return operators.judgeUpgrade(head) }
        switch admission.judge(head, by: peer.transport, counted: peer.arrival?.counted, at: now()) {
        case .admitted(var client):
            peer.arrival?.counted = nil
            client.tunnel = peer.tunnel
            return .admitted(.client(client))
        case .refused(var denial):
            denial.trace = TraceContext(head)
            note(denial)
            return .refused(denial.response)
        }
    }

    /// Counts and logs a refusal.
    func note(_ denial: Admission.Denial) {
        if let limit = denial.limit { hub.countRefusal(limit) }
        // Clients reconnect by themselves, and the operator knows the cause.
        guard denial.reason != .draining, denial.reason != .database else { return }
        denials.tell(
            "A connection was refused", reason: denial.reason.rawValue, why: denial.sentence, of: denial.address,
            at: second, logger, trace: denial.trace)
    }

    /// Gives a socket to lws, with a head of our own and the bytes that followed the client's. The socket belongs to
    /// lws afterwards, whatever the outcome.
    func handOver(_ fd: Int32, _ bytes: [UInt8], _ upgrade: PendingUpgrade) {
        upgrades.beginHandOver(upgrade)
        lws.adopt(fd, bytes)
        if let upgrade = upgrades.endHandOver() { abandon(upgrade) }
    }

    /// Called when lws has opened the WebSocket. A negative result closes the connection.
    func established(_ wsi: OpaquePointer, _ user: UnsafeMutableRawPointer?) -> Int32 {
        guard let user, let upgrade = upgrades.take(wsi) else { return -1 }
        switch upgrade {
        case .operators(let request): operators.opened(wsi, user, request)
        // lws zeroes these bytes, so zero means that there is no slot.
        case .client(let client): user.storeBytes(of: opened(wsi, client) + 1, as: Slot.self)
        }
        return 0
    }

    /// Called when lws forgets a connection.
    func destroyed(_ wsi: OpaquePointer) {
        if let upgrade = upgrades.take(wsi) { abandon(upgrade) }
    }

    private func abandon(_ upgrade: PendingUpgrade) {
        if case .client(let client) = upgrade { admission.abandon(client) }
    }
}

import CWebSockets
import HTTP
import Hub
import Wire

/// An upgrade that was let in, until lws says that the WebSocket is open, or gone.
enum PendingUpgrade {
    case client(Admission.Client)
    case operators(HTTPRequest)
}

/// The upgrades of a loop that were let in and are not open yet, by lws' connection.
struct PendingUpgrades {
    private var upgrades: [OpaquePointer: PendingUpgrade] = [:]
    /// Whom lws is about to make a connection of.
    private var handedOver: PendingUpgrade?

    func has(_ wsi: OpaquePointer) -> Bool { upgrades[wsi] != nil }

    mutating func take(_ wsi: OpaquePointer) -> PendingUpgrade? {
        upgrades.isEmpty ? nil : upgrades.removeValue(forKey: wsi)
    }

    /// A socket is about to be given to lws, which says `adopted` while it takes it.
    mutating func beginHandOver(_ upgrade: PendingUpgrade) { handedOver = upgrade }

    /// lws has made a connection of the socket that is handed over. When it handles the head is its own matter: at once, or
    /// later where it has no room for headers.
    mutating func adopted(_ wsi: OpaquePointer) {
        if let upgrade = handedOver.take() { upgrades[wsi] = upgrade }
    }

    /// - Returns: the upgrade where lws has not taken it, for want of memory or room.
    mutating func endHandOver() -> PendingUpgrade? { handedOver.take() }
}

/// From a request for a WebSocket to the WebSocket.
extension EventLoop {
    enum UpgradeVerdict {
        case admitted(PendingUpgrade)
        case refused(HTTPResponse)
    }

    /// Where a client is let in, its upgrade has the connection's count.
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

    /// Counts and logs that somebody was not let in.
    func note(_ denial: Admission.Denial) {
        if let limit = denial.limit { hub.countRefusal(limit) }
        // Clients come back by themselves, and the operator knows.
        guard denial.reason != .draining, denial.reason != .database else { return }
        denials.tell(
            "A connection was refused", reason: denial.reason.rawValue, why: denial.sentence, of: denial.address,
            at: second, logger, trace: denial.trace)
    }

    /// Gives a socket to lws, with a head of our own and what the client sent behind its. From here on it is lws', whatever
    /// becomes of it.
    func handOver(_ fd: Int32, _ bytes: [UInt8], _ upgrade: PendingUpgrade) {
        upgrades.beginHandOver(upgrade)
        lws.adopt(fd, bytes)
        if let upgrade = upgrades.endHandOver() { abandon(upgrade) }
    }

    /// lws has opened the WebSocket. Negative closes the connection.
    func established(_ wsi: OpaquePointer, _ user: UnsafeMutableRawPointer?) -> Int32 {
        guard let user, let upgrade = upgrades.take(wsi) else { return -1 }
        switch upgrade {
        case .operators(let request): operators.opened(wsi, user, request)
        // lws zeroes these bytes, so zero means that there is no slot.
        case .client(let client): user.storeBytes(of: opened(wsi, client) + 1, as: Slot.self)
        }
        return 0
    }

    /// lws forgets a connection.
    func destroyed(_ wsi: OpaquePointer) {
        if let upgrade = upgrades.take(wsi) { abandon(upgrade) }
    }

    private func abandon(_ upgrade: PendingUpgrade) {
        if case .client(let client) = upgrade { admission.abandon(client) }
    }
}

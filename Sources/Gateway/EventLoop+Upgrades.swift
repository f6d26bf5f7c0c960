import CWebSockets
import HTTP
import Hub
import Wire

/// An upgrade that was let in, until lws says that the WebSocket is open, or gone.
enum PendingUpgrade {
    case client(Door.Admission)
    case operators(HTTPRequest)
}

/// From a request for a WebSocket to the WebSocket.
extension EventLoop {
    enum UpgradeVerdict {
        case admitted(PendingUpgrade)
        case refused(HTTPResponse)
    }

    /// Who is let in has a seat, which `abandon` gives back.
    func judgeUpgrade(_ head: some RequestHead, by fd: Int32, isOps: Bool) -> UpgradeVerdict {
        if isOps { return judgeOpsUpgrade(head) }
        let peer = Peer(of: fd, head, trusting: rules.trustedProxies)
        let verdict: Door.Verdict
        if isDraining {
            // It was accepted before the listeners were closed.
            verdict = .refused(HTTPResponse.error(503, Refusal.restarting.message), .draining)
        } else if peer.isBehindProxy, failing.keepsFailing(peer.text) {
            // Others are held back before they are heard; here it takes a header to know who it is.
            verdict = .refused(HTTPResponse.error(429, "Too many bad tokens from this address; try again in a minute"), .limit)
        } else {
            verdict = seated(door.judge(head, at: now()), peer)
        }
        switch verdict {
        case .admitted(let admission): return .admitted(.client(admission))
        case .refused(let response, let reason):
            counters.refused[reason, default: 0] += 1
            if reason.countsAgainst, let address = peer.address { failing.failed(address.text) }
            return .refused(response)
        }
    }

    /// Gives a socket to lws, with a head of our own and what the client sent behind its. From here on it is lws', whatever
    /// becomes of it.
    func handOver(_ fd: Int32, _ bytes: [UInt8], _ upgrade: PendingUpgrade) {
        handedOver = upgrade
        _ = bytes.withUnsafeBytes { bytes in
            lws_adopt_socket_vhost_readbuf(
                plain, fd, bytes.baseAddress?.assumingMemoryBound(to: CChar.self), bytes.count)
        }
        // lws had no memory for it, or no room.
        if let handedOver {
            self.handedOver = nil
            abandon(handedOver)
        }
    }

    /// lws has made a connection of a socket: inside `handOver`, which is why it is known for whom. When it handles the head
    /// is its own matter: at once, or later where it has no room for headers.
    func adopted(_ wsi: OpaquePointer) {
        guard let handedOver else { return }
        self.handedOver = nil
        upgrades[wsi] = handedOver
    }

    /// lws has read the head of an upgrade: ours, or the client's own over TLS. Zero lets it go on, a negative value closes
    /// the connection.
    func confirmUpgrade(_ wsi: OpaquePointer) -> Int32 {
        guard upgrades[wsi] == nil else { return 0 }
        let head = HeaderReader(wsi: wsi)
        let fd = Int32(lws_get_socket_fd(wsi))
        switch WebSocketHandshake.isAsked(by: head)
            ? judgeUpgrade(head, by: fd, isOps: false) : .refused(refusal(of: head))
        {
        case .refused(let response): return writeLast(response, by: head.field("origin"), to: wsi)
        case .admitted(let upgrade):
            upgrades[wsi] = upgrade
            return 0
        }
    }

    private func refusal(of head: HeaderReader) -> HTTPResponse {
        refusal(of: head, isOps: false) ?? .error(400, "An upgrade is to be asked for with GET, and to a WebSocket")
    }

    /// Negative closes the connection.
    func established(_ wsi: OpaquePointer, _ user: UnsafeMutableRawPointer?) -> Int32 {
        guard let user, let upgrade = upgrades.removeValue(forKey: wsi) else { return -1 }
        switch upgrade {
        case .operators(let request): opsEstablished(wsi, user, request)
        // lws zeroes these bytes, so zero means that there is no slot.
        case .client(let admission): user.storeBytes(of: opened(wsi, admission) + 1, as: Slot.self)
        }
        return 0
    }

    /// lws forgets a connection.
    func destroyed(_ wsi: OpaquePointer) {
        guard !upgrades.isEmpty, let upgrade = upgrades.removeValue(forKey: wsi) else { return }
        abandon(upgrade)
    }

    /// An upgrade that was admitted and never completed gives its seat back.
    private func abandon(_ upgrade: PendingUpgrade) {
        guard case .client(let admission) = upgrade else { return }
        seats.leave(admission.address)
        if let user = admission.countedUser { seats.leave(user) }
    }
}

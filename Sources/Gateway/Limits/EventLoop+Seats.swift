import HTTP
import Hub
import Wire

/// Seats for the sockets of a loop.
extension EventLoop {
    /// Takes a seat for an upgrade that the door has nothing against.
    func seated(_ verdict: Door.Verdict, _ peer: Peer) -> Door.Verdict {
        guard case .admitted(var admission) = verdict else { return verdict }
        // Noted with the upgrade, because what is counted may be another matter by the time that it ends.
        admission.peer = peer.address
        if seats.countsAddresses { admission.address = peer.address.map { PeerAddress($0) } }
        if seats.countsUsers { admission.countedUser = admission.claims.subject }
        guard let refusal = seats.enter(admission.address, admission.countedUser) else {
            return .admitted(admission)
        }
        hub.countRefusal(refusal)
        let status: UInt32 = if case .over(.connections, _) = refusal { 503 } else { 429 }
        return .refused(HTTPResponse.error(status, refusal.message), .limit)
    }

    /// The seat is the socket's from here on.
    func seat(_ slot: Slot, _ admission: Door.Admission) {
        if admission.address == nil, addresses.count <= Int(slot) { return }
        while addresses.count <= Int(slot) { addresses.append(nil) }
        addresses[Int(slot)] = admission.address
    }

    func leaveSeat(_ slot: Slot) {
        seats.leave(Int(slot) < addresses.count ? addresses[Int(slot)] : nil)
    }
}

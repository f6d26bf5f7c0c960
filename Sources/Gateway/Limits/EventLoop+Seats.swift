import CWebSockets
import Hub
import Wire

/// Seats for the sockets of a loop.
extension EventLoop {
    /// Takes a seat for an upgrade that the door has nothing against.
    func seated(_ verdict: Door.Verdict, _ wsi: OpaquePointer) -> Door.Verdict {
        guard case .admitted(var admission) = verdict else { return verdict }
        if seats.countsAddresses { admission.address = PeerAddress(of: Int32(lws_get_socket_fd(wsi))) }
        guard let refusal = seats.enter(admission.address, admission.claims.subject) else {
            return .admitted(admission)
        }
        hub.countRefusal(refusal)
        let status: UInt32 = if case .over(.connections, _) = refusal { 503 } else { 429 }
        return .refused(Door.error(status, refusal.message), .limit)
    }

    /// The seat is the socket's from here on.
    func seat(_ slot: Slot, _ address: PeerAddress?) {
        guard seats.countsAddresses else { return }
        while addresses.count <= Int(slot) { addresses.append(nil) }
        addresses[Int(slot)] = address
    }

    func leaveSeat(_ slot: Slot) {
        seats.leave(seats.countsAddresses ? addresses[Int(slot)] : nil)
    }

    /// An upgrade that was admitted and never completed gives its seat back.
    func abandonAdmission() {
        guard let admission else { return }
        self.admission = nil
        seats.leave(admission.address)
        if seats.countsUsers, let user = admission.claims.subject { seats.leave(user) }
    }
}

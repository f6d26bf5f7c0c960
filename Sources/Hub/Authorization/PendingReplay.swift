import Wire

/// What a join that asked for a replay has coming to it before it is answered.
///
/// **Nothing is lost or doubled.** A message that is committed while the join is under way is visible to the replay's
/// query, or it is not. If it is not, the feed brings it after the query began, which is after the question was asked;
/// from that moment on `live` keeps what the feed brings to the channel, until the member has its seat. If it is, the feed
/// brings it, too: before the reply, then it is among `live` and dropped there by its id; or after, then the channel's
/// `replayed` keeps it from this member. What was visible and not replayed, because it lies beyond the limit, and arrives
/// by the feed in these moments is sent: it is as live as any other.
struct PendingReplay {
    let request: ReplayRequest
    /// The answer to the question.
    var messages: [ReplayedMessage] = []
    private(set) var live: [DatabaseBroadcast] = []
    private(set) var bytes = 0
    /// There was more than can be kept; the join is refused rather than something left out.
    private(set) var overflowed = false

    init(request: ReplayRequest) {
        self.request = request
    }

    /// - Returns: by how many bytes more is kept; negative where all was given up.
    mutating func keep(_ message: DatabaseBroadcast, limits: HubLimits, room: Int) -> Int {
        guard !overflowed else { return 0 }
        let size = message.broadcast.bytes
        guard live.count < limits.heldPerMember, bytes + size <= limits.payloadBytes, size <= room else {
            overflowed = true
            live = []
            defer { bytes = 0 }
            return -bytes
        }
        live.append(message)
        bytes += size
        return size
    }
}

extension Broadcast {
    fileprivate var bytes: Int { MemberWrite.broadcast(self).bytes }
}

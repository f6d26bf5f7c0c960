/// Who may come back to one channel for what it missed, among clients that name no id.
///
/// The rules are those of `RecoveryBook`, for the same reasons: nothing tells which of a user's sockets comes back, so a
/// join gets the earliest position that may be its own, and whoever turns out to be somebody else gets some messages that
/// it did not miss.
struct HistorySessions {
    struct Found {
        let position: Int
        /// Who it was, where there is only one that it can have been.
        let member: MemberID?
    }

    private struct Ended {
        let position: Int
        let member: MemberID
        /// Milliseconds, monotonic.
        let until: Int64
        var isTaken = false
    }

    /// Only those with a user: others are not looked for among the living.
    private var live: [HistoryKey: [HistorySession]] = [:]
    private var ended: [HistoryKey: [Ended]] = [:]
    /// No session ends before this.
    private var nextEnd = Int64.max

    /// Sessions kept for one key; anonymous clients share one. Of more, the earliest positions stay.
    private static let mostEnded = 64

    /// Nobody is waited for.
    var isEmpty: Bool { ended.isEmpty }

    mutating func enter(_ session: HistorySession) {
        if session.key.hasSubject { live[session.key, default: []].append(session) }
    }

    /// Takes a membership out; one that was lost may come back until `until`.
    mutating func end(_ session: HistorySession, lostAt position: Int?, until: Int64) {
        if var list = live.removeValue(forKey: session.key) {
            list.removeAll { $0 === session }
            if !list.isEmpty { live[session.key] = list }
        }
        guard let position else { return }
        var list = ended[session.key] ?? []
        list.append(Ended(position: position, member: session.member, until: until))
        if list.count > Self.mostEnded, let latest = list.indices.max(by: { list[$0].position < list[$1].position }) {
            list.remove(at: latest)
        }
        ended[session.key] = list
        nextEnd = min(nextEnd, until)
    }

    /// Where a join has to start that names no id; nil where it can have missed nothing.
    ///
    /// - Parameter readers: how far each loop was when.
    mutating func takeOver(_ key: HistoryKey, joinNumber: Int, readers: [Int: HistoryReader]) -> Found? {
        var positions: [Int] = []
        var members: [MemberID] = []
        if let list = ended[key] {
            let free = list.indices.filter { !list[$0].isTaken }
            // The earliest is given out and the latest marked: whoever comes next finds the earliest still there.
            if let latest = free.max(by: { list[$0].position < list[$1].position }) {
                ended[key]?[latest].isTaken = true
            }
            positions += (free.isEmpty ? Array(list.indices) : free).map { list[$0].position }
            members += list.map(\.member)
        }
        // A live socket may be a dead one that nobody noticed. Clients count their refs on over reconnects.
        if key.hasSubject {
            for session in live[key] ?? [] where session.joinNumber < joinNumber {
                positions.append(session.proven(readers[session.member.loop]))
                members.append(session.member)
            }
        }
        guard let earliest = positions.min() else { return nil }
        return Found(position: earliest, member: members.count == 1 ? members[0] : nil)
    }

    mutating func forget(at now: Int64) {
        guard now >= nextEnd else { return }
        nextEnd = .max
        for (key, list) in ended {
            let rest = list.filter { $0.until > now }
            ended[key] = rest.isEmpty ? nil : rest
            for one in rest { nextEnd = min(nextEnd, one.until) }
        }
    }
}

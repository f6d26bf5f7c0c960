/// Determines the receipts proven by a pong, without being asked: the rows sent to the socket between the previous ping
/// and the one that the pong answers.
///
/// A row is recorded once for each group of subscribers (`SentRows`); a socket costs nothing until it answers.
struct ReceiptTracker {
    let log: ReceiptLog
    /// The points since which sockets' proofs were not accepted, because the log had no room or a client may have given
    /// its join up.
    private var owed: [Slot: (moment: Int, mark: Int)] = [:]

    init(log: ReceiptLog) { self.log = log }

    /// Whether a socket was sent rows that it has not proven.
    func isOwedProof(by connection: Connection, of sent: SentRows) -> Bool {
        let acknowledged = owed[connection.slot]?.moment ?? connection.acknowledged?.latest.moment ?? 0
        return connection.memberships.contains { sent.hasReceipt(for: $0, after: acknowledged) }
    }

    /// Records the proof in a socket's answer to its last ping. Call before the answer counts as an acknowledgement
    /// (`ReceiptLog`).
    mutating func recordProof(_ connection: Connection, _ sent: SentRows, _ hub: inout HubContext) {
        guard let asked = connection.openPing, let last = connection.acknowledged?.latest else { return }
        let from = owed[connection.slot] ?? (moment: last.moment, mark: last.mark)
        guard log.hasRoom else { return owed[connection.slot] = from }
        var receipts: [Receipt] = []
        var isDoubted = false
        for membership in connection.memberships {
            guard let user = membership.claims.subject else { continue }
            let isBelieved = membership.recovery?.session.isBelieved(at: hub.now.monotonic) ?? true
            sent.forEachReceipt(for: membership, after: from.moment, before: asked.moment) { row in
                guard isBelieved else { return isDoubted = true }
                receipts.append(
                    Receipt(user: user, row: row, isShown: connection.isShown, at: hub.now.unix, mark: from.mark))
            }
        }
        owed[connection.slot] = isDoubted ? from : nil
        log.append(receipts)
    }

    mutating func socketClosed(_ slot: Slot) { owed[slot] = nil }
}

import Wire

/// Finds out which receipts a pong proves, without anybody asking: the rows that were sent to the socket between the ping before and the
/// one that it answers.
///
/// A row is noted once for each group of subscribers; a socket costs nothing until it answers.
///
/// **Bounds**: the last `capacity` rows of the last `longestWait` are noted. Of an older row no receipt is written.
struct ReceiptTracker {
    let log: ReceiptLog
    private var rows = TrackedRows()
    /// From where on sockets have proven what was not taken: the log had no room, or a client may have given its join up.
    private var owed: [Slot: (moment: Int, mark: Int)] = [:]

    /// In monotonic milliseconds: a phone that answers nothing for so long has lost its socket.
    private static let longestWait: Int64 = 120_000

    init(log: ReceiptLog) { self.log = log }

    // MARK: What was sent

    mutating func note(
        _ row: ReceiptRow, to group: ChangeGroupID, _ recipients: ChangeDelivery.Recipients, at moment: Int,
        _ now: Int64
    ) {
        rows.append(TrackedRow(row: row, moment: moment, at: now, recipients: recipients), to: .group(group))
    }

    mutating func note(_ row: ReceiptRow, to member: MemberID, at moment: Int, _ now: Int64) {
        rows.append(TrackedRow(row: row, moment: moment, at: now, recipients: .everybody), to: .member(member))
    }

    mutating func note(_ insert: JSON, to channel: ChannelKey, at moment: Int, _ now: Int64) {
        guard let row = log.tables.row(of: insert) else { return }
        rows.append(TrackedRow(row: row, moment: moment, at: now, recipients: .everybody), to: .channel(channel))
    }

    /// Whether a socket was sent rows that it has not proven.
    func isOwedProof(by connection: Connection) -> Bool {
        let acknowledged = owed[connection.slot]?.moment ?? connection.acknowledged?.latest.moment ?? 0
        return connection.memberships.contains { membership in
            rows.audiences(of: membership).contains { rows.newest(of: $0, for: membership) > acknowledged }
        }
    }

    // MARK: What is proven

    /// A socket answers its last ping. To be called before that counts (`ReceiptLog`).
    mutating func proves(_ connection: Connection, _ hub: inout HubContext) {
        guard let asked = connection.openPing, let last = connection.acknowledged?.latest else { return }
        let from = owed[connection.slot] ?? (moment: last.moment, mark: last.mark)
        guard log.hasRoom else { return owed[connection.slot] = from }
        var receipts: [Receipt] = []
        var isDoubted = false
        for membership in connection.memberships {
            guard let user = membership.claims.subject else { continue }
            let isBelieved = membership.recovery?.session.isBelieved(at: hub.now.monotonic) ?? true
            for audience in rows.audiences(of: membership) {
                rows.forEach(of: audience, after: from.moment, before: asked.moment) { row in
                    guard row.isSent(to: membership, by: audience) else { return }
                    guard isBelieved else { return isDoubted = true }
                    receipts.append(
                        Receipt(
                            user: user, row: row.row, isShown: connection.isShown, at: hub.now.unix, mark: from.mark))
                }
            }
        }
        owed[connection.slot] = isDoubted ? from : nil
        log.append(receipts)
    }

    mutating func closed(_ slot: Slot) { owed[slot] = nil }

    /// To be called once a second.
    mutating func advance(to now: Int64) { rows.forget(before: now - Self.longestWait) }
}

/// A row that was sent, when, and to whom of its audience.
private struct TrackedRow {
    let row: ReceiptRow
    /// As `SessionRegistry.moment` counts.
    let moment: Int
    /// In monotonic milliseconds.
    let at: Int64
    let recipients: ChangeDelivery.Recipients

    func isSent(to membership: Membership, by audience: TrackedRows.Audience) -> Bool {
        switch audience {
        case .member: true
        case .channel: membership.hearsBroadcasts(sentAt: moment)
        case .group: membership.hearsRows(for: recipients, sentAt: moment)
        }
    }
}

/// The last rows that a loop has sent, by their audience, and all of them in their order, so that the oldest gives way.
private struct TrackedRows {
    enum Audience: Hashable {
        case group(ChangeGroupID)
        case member(MemberID)
        case channel(ChannelKey)
    }

    private var byAudience: [Audience: FIFO<TrackedRow>] = [:]
    private var order = FIFO<Audience>()
    /// How many of the audiences are members, and channels: where there are none, nobody looks for them.
    private var (members, channels) = (0, 0)

    static let capacity = 65_536

    mutating func append(_ row: TrackedRow, to audience: Audience) {
        if order.count == Self.capacity { forgetOldest() }
        if byAudience[audience] == nil { count(audience, 1) }
        byAudience[audience, default: FIFO()].append(row)
        order.append(audience)
    }

    private mutating func count(_ audience: Audience, _ step: Int) {
        switch audience {
        case .group: break
        case .member: members += step
        case .channel: channels += step
        }
    }

    private mutating func forgetOldest() {
        guard let audience = order.removeFirst() else { return }
        byAudience[audience]?.removeFirst()
        guard byAudience[audience]?.first == nil else { return }
        byAudience[audience] = nil
        count(audience, -1)
    }

    mutating func forget(before moment: Int64) {
        while let audience = order.first, let row = byAudience[audience]?.first, row.at < moment { forgetOldest() }
    }

    /// By what a member may have been sent rows.
    func audiences(of membership: Membership) -> [Audience] {
        var audiences: [Audience] = []
        if let group = membership.group { audiences.append(.group(group.id)) }
        if members > 0 { audiences.append(.member(membership.member)) }
        if channels > 0 { audiences.append(.channel(membership.channel.key)) }
        return audiences
    }

    /// When the last row went to an audience that a member heard; 0 where none did.
    func newest(of audience: Audience, for membership: Membership) -> Int {
        guard let last = byAudience[audience]?.last, last.isSent(to: membership, by: audience) else { return 0 }
        return last.moment
    }

    func forEach(of audience: Audience, after start: Int, before end: Int, _ body: (TrackedRow) -> Void) {
        guard let rows = byAudience[audience] else { return }
        // Most are the newest of all.
        for row in rows.newest(while: { $0.moment > start }) where row.moment < end { body(row) }
    }
}

/// What comes first goes first.
private struct FIFO<Element> {
    private var items: [Element] = []
    private var gone = 0

    var count: Int { items.count - gone }
    var first: Element? { gone < items.count ? items[gone] : nil }
    var last: Element? { gone < items.count ? items.last : nil }

    mutating func append(_ element: Element) { items.append(element) }

    @discardableResult mutating func removeFirst() -> Element? {
        guard let first else { return nil }
        gone += 1
        if gone * 2 > items.count {
            items.removeFirst(gone)
            gone = 0
        }
        return first
    }

    /// Those at the end that meet a condition, in their order.
    func newest(while meets: (Element) -> Bool) -> ArraySlice<Element> {
        var start = items.endIndex
        while start > gone, meets(items[start - 1]) { start -= 1 }
        return items[start...]
    }
}

import Wire

/// A row that was sent: when, to whom, and what somebody may want to know of it.
struct SentRow {
    /// By what a member was sent it.
    enum Audience: Hashable {
        case group(ChangeGroupID)
        case member(MemberID)
        /// By a message of `realtime.broadcast_changes`.
        case channel(ChannelKey)
    }

    /// `RowChange.id`, if somebody may ask about it; 0 if a broadcast told it.
    var change: Int64 = 0
    /// As `SessionRegistry.moment` counts.
    let moment: Int
    /// In monotonic milliseconds.
    let at: Int64
    let audience: Audience
    /// Of a group.
    var recipients = ChangeDelivery.Recipients.everybody
    /// Nil if its receipts are not written back.
    var receipt: ReceiptRow?
    /// What a broadcast told, if somebody may ask about it.
    var insert: JSON?

    /// Roughly what it keeps of the message.
    var bytes: Int { insert?.bytes.count ?? 0 }

    func isSent(to membership: Membership) -> Bool {
        switch audience {
        case .member(let member): membership.member == member
        case .group(let group):
            membership.rows?.group.id == group && membership.hearsRows(for: recipients, sentAt: moment)
        case .channel(let channel):
            membership.channel.key == channel && membership.hearsBroadcasts(sentAt: moment)
        }
    }
}

extension Membership {
    /// Whether it was sent what went to its group.
    ///
    /// - Parameter moment: as `SessionRegistry.moment` counts.
    func hearsRows(for recipients: ChangeDelivery.Recipients, sentAt moment: Int) -> Bool {
        guard let rows, rows.groupIndex != nil, rows.hearsSince < moment else { return false }
        if case .bearers(let claims) = recipients { return claims.contains(rows.principal.claims) }
        return true
    }

    /// Whether it was sent what went to its channel.
    func hearsBroadcasts(sentAt moment: Int) -> Bool { hearsBroadcasts && hearsBroadcastsSince < moment }
}

/// The last rows that a loop has sent, each once for each audience; the oldest give way to the next. One list for those who ask about a
/// row (`Receipts`) and for what pongs prove without anybody asking (`ReceiptTracker`).
///
/// **Bounds**: `capacity` rows. Of these the last `mostAsked` are found by questions, and those of the last `longestWait` by pongs.
struct SentRows {
    private var rows = NumberedQueue<SentRow>()
    /// The numbers of those whose receipts are written back.
    private var byAudience: [SentRow.Audience: NumberedQueue<Int>] = [:]
    /// From this number on they are there.
    private var indexedFrom = 0
    /// How many of the audiences are members, and channels: without any, nobody looks for them.
    private var (members, channels) = (0, 0)
    private var bytes = 0
    private let capacity: Int

    /// At 1,000 messages a second those of eight seconds; their receipts are asked for within milliseconds, unless Postgres is slow.
    private static let mostAsked = 8192
    /// The same for receipts that are written back.
    private static let mostWritten = 65_536
    /// In milliseconds: a phone that answers nothing for so long has lost its socket.
    private static let longestWait: Int64 = 120_000
    /// What broadcasts of rows may take, which are kept whole.
    private static let mostBytes = 8 << 20

    /// - Parameter areWritten: receipts are written back.
    init(areWritten: Bool) { capacity = areWritten ? Self.mostWritten : Self.mostAsked }

    mutating func append(_ row: SentRow) {
        if rows.count == capacity { removeOldest() }
        if row.receipt != nil { index(row) }
        bytes += row.bytes
        rows.append(row)
        if bytes > Self.mostBytes { forgetBroadcasts() }
    }

    /// Forgets what is too old for a receipt. To be called once a second.
    mutating func advance(to now: Int64) {
        let oldest = now - Self.longestWait
        while indexedFrom < rows.endNumber, rows[indexedFrom].at < oldest { removeFromIndex() }
        while rows.count > Self.mostAsked, rows.firstNumber < indexedFrom { removeOldest() }
    }

    private mutating func removeOldest() {
        if indexedFrom == rows.firstNumber { removeFromIndex() }
        bytes -= rows.removeFirst().bytes
    }

    // MARK: By audience

    private mutating func index(_ row: SentRow) {
        if byAudience[row.audience] == nil { count(row.audience, 1) }
        byAudience[row.audience, default: NumberedQueue()].append(rows.endNumber)
    }

    private mutating func removeFromIndex() {
        let row = rows[indexedFrom]
        indexedFrom += 1
        guard row.receipt != nil else { return }
        byAudience[row.audience]?.removeFirst()
        guard byAudience[row.audience]?.count == 0 else { return }
        byAudience[row.audience] = nil
        count(row.audience, -1)
    }

    private mutating func count(_ audience: SentRow.Audience, _ step: Int) {
        switch audience {
        case .group: break
        case .member: members += step
        case .channel: channels += step
        }
    }

    /// By what a member may have been sent rows.
    private func audiences(of membership: Membership) -> [SentRow.Audience] {
        var audiences: [SentRow.Audience] = []
        if let group = membership.group { audiences.append(.group(group.id)) }
        if members > 0 { audiences.append(.member(membership.member)) }
        if channels > 0 { audiences.append(.channel(membership.channel.key)) }
        return audiences
    }

    /// Whether the last row of one of its audiences was sent to a member behind a moment, and its receipt is written back.
    func hasReceipt(for membership: Membership, after moment: Int) -> Bool {
        if byAudience.isEmpty { return false }
        return audiences(of: membership).contains { audience in
            guard let number = byAudience[audience]?.last else { return false }
            let row = rows[number]
            return row.moment > moment && row.isSent(to: membership)
        }
    }

    /// The rows that were sent to a member between two moments, and whose receipts are written back.
    func forEachReceipt(
        for membership: Membership, after start: Int, before end: Int, _ body: (ReceiptRow) -> Void
    ) {
        if byAudience.isEmpty { return }
        for audience in audiences(of: membership) {
            guard let numbers = byAudience[audience] else { continue }
            // Most are the newest of all.
            for number in numbers.newest(while: { rows[$0].moment > start }) {
                let row = rows[number]
                if row.moment < end, let receipt = row.receipt, row.isSent(to: membership) { body(receipt) }
            }
        }
    }

    // MARK: Questions

    /// Those that told a question's row.
    func rows(of question: ReceiptQuestion) -> [SentRow] {
        rows.newest(Self.mostAsked).filter { row in
            if let insert = row.insert { return question.row.isMeant(by: insert) }
            return row.change != 0 && row.change == question.change
        }
    }

    /// Forgets what the older half of the broadcasts told.
    private mutating func forgetBroadcasts() {
        for number in rows.firstNumber..<rows.endNumber where bytes > Self.mostBytes / 2 {
            bytes -= rows[number].bytes
            if rows[number].insert != nil { rows[number].insert = .null }
        }
    }
}

/// What comes first goes first. Each has a number, which counts up from 0.
private struct NumberedQueue<Element> {
    private var items: [Element] = []
    /// How many of `items` are gone.
    private var gone = 0
    private(set) var firstNumber = 0

    var count: Int { items.count - gone }
    /// The number of the next.
    var endNumber: Int { firstNumber + count }
    var last: Element? { count > 0 ? items.last : nil }

    subscript(number: Int) -> Element {
        get { items[gone + number - firstNumber] }
        set { items[gone + number - firstNumber] = newValue }
    }

    mutating func append(_ element: Element) { items.append(element) }

    @discardableResult mutating func removeFirst() -> Element {
        let first = items[gone]
        gone += 1
        firstNumber += 1
        if gone * 2 > items.count {
            items.removeFirst(gone)
            gone = 0
        }
        return first
    }

    /// So many of those that came last, in their order.
    func newest(_ most: Int) -> ArraySlice<Element> { items[gone...].suffix(most) }

    /// Those that came last and meet a condition, in their order.
    func newest(while meets: (Element) -> Bool) -> ArraySlice<Element> {
        var start = items.endIndex
        while start > gone, meets(items[start - 1]) { start -= 1 }
        return items[start...]
    }
}

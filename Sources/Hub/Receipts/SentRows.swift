import Wire

/// A row that was sent: when, to whom, and the facts that may be asked about.
struct SentRow {
    /// The route by which members were sent a row.
    enum Audience: Hashable {
        case group(ChangeGroupID)
        case member(MemberID)
        /// By a message of `realtime.broadcast_changes`.
        case channel(ChannelKey)
    }

    /// `RowChange.id`, if it may be asked about; 0 if a broadcast carried the row.
    var change: Int64 = 0
    /// As counted by `SessionRegistry.moment`.
    let moment: Int
    /// In monotonic milliseconds.
    let at: Int64
    let audience: Audience
    /// The recipients within a group.
    var recipients = ChangeDelivery.Recipients.everybody
    /// Nil if its receipts are not written back.
    var receipt: ReceiptRow?
    /// The change that a broadcast carried, if it may be asked about.
    var insert: JSON?

    /// The approximate memory kept of the message.
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
    /// Whether the member was sent a change that went to its group.
    ///
    /// - Parameter moment: as counted by `SessionRegistry.moment`.
    func hearsRows(for recipients: ChangeDelivery.Recipients, sentAt moment: Int) -> Bool {
        guard let rows, rows.groupIndex != nil, rows.hearsSince < moment else { return false }
        if case .bearers(let claims) = recipients { return claims.contains(rows.principal.claims) }
        return true
    }

    /// Whether the member was sent a broadcast that went to its channel.
    func hearsBroadcasts(sentAt moment: Int) -> Bool { hearsBroadcasts && hearsBroadcastsSince < moment }
}

/// The latest rows that a loop has sent, each once per audience; the oldest give way to new ones. One list serves
/// questions about rows (`Receipts`) and unasked proofs by pongs (`ReceiptTracker`).
///
/// **Bounds**: `capacity` rows. Questions find the last `mostAsked` of these, pongs those of the last `longestWait`.
struct SentRows {
    private var rows = NumberedQueue<SentRow>()
    /// The numbers of rows whose receipts are written back.
    private var byAudience: [SentRow.Audience: NumberedQueue<Int>] = [:]
    /// The first number that `byAudience` covers.
    private var indexedFrom = 0
    /// The number of audiences that are members, and channels: without any, the look-ups are skipped.
    private var (members, channels) = (0, 0)
    private var bytes = 0
    private let capacity: Int

    /// Eight seconds' worth at 1,000 messages a second; their receipts are asked for within milliseconds, unless
    /// Postgres is slow.
    private static let mostAsked = 8192
    /// The same limit when receipts are written back.
    private static let mostWritten = 65_536
    /// In milliseconds: a phone that answers nothing for this long has lost its socket.
    private static let longestWait: Int64 = 120_000
    /// The maximum bytes of broadcasts of rows, which are kept whole.
    private static let mostBytes = 8 << 20

    /// - Parameter areWritten: whether receipts are written back.
    init(areWritten: Bool) { capacity = areWritten ? Self.mostWritten : Self.mostAsked }

    mutating func append(_ row: SentRow) {
        if rows.count == capacity { removeOldest() }
        if row.receipt != nil { indexRow(row) }
        bytes += row.bytes
        rows.append(row)
        if bytes > Self.mostBytes { forgetBroadcasts() }
    }

    /// Drops rows that are too old for a receipt. Call once a second.
    mutating func advanceTime(to now: Int64) {
        let oldest = now - Self.longestWait
        while indexedFrom < rows.endNumber, rows[indexedFrom].at < oldest { removeFromIndex() }
        while rows.count > Self.mostAsked, rows.firstNumber < indexedFrom { removeOldest() }
    }

    private mutating func removeOldest() {
        if indexedFrom == rows.firstNumber { removeFromIndex() }
        bytes -= rows.removeFirst().bytes
    }

    // MARK: By audience

    private mutating func indexRow(_ row: SentRow) {
        if byAudience[row.audience] == nil { countAudience(row.audience, 1) }
        byAudience[row.audience, default: NumberedQueue()].append(rows.endNumber)
    }

    private mutating func removeFromIndex() {
        let row = rows[indexedFrom]
        indexedFrom += 1
        guard row.receipt != nil else { return }
        byAudience[row.audience]?.removeFirst()
        guard byAudience[row.audience]?.count == 0 else { return }
        byAudience[row.audience] = nil
        countAudience(row.audience, -1)
    }

    private mutating func countAudience(_ audience: SentRow.Audience, _ step: Int) {
        switch audience {
        case .group: break
        case .member: members += step
        case .channel: channels += step
        }
    }

    /// Returns the audiences by which a member may have been sent rows.
    private func audiences(of membership: Membership) -> [SentRow.Audience] {
        var audiences: [SentRow.Audience] = []
        if let group = membership.group { audiences.append(.group(group.id)) }
        if members > 0 { audiences.append(.member(membership.member)) }
        if channels > 0 { audiences.append(.channel(membership.channel.key)) }
        return audiences
    }

    /// Whether the last row of one of its audiences, with a receipt that is written back, was sent to a member after a
    /// moment.
    func hasReceipt(for membership: Membership, after moment: Int) -> Bool {
        if byAudience.isEmpty { return false }
        return audiences(of: membership).contains { audience in
            guard let number = byAudience[audience]?.last else { return false }
            let row = rows[number]
            return row.moment > moment && row.isSent(to: membership)
        }
    }

    /// Visits the rows that were sent to a member between two moments and whose receipts are written back.
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

    /// Returns the sent rows that match a question's row.
    func rows(of question: ReceiptQuestion) -> [SentRow] {
        rows.newest(Self.mostAsked).filter { row in
            if let insert = row.insert { return question.row.isMeant(by: insert) }
            return row.change != 0 && row.change == question.change
        }
    }

    /// Drops the contents of the older half of the broadcasts.
    private mutating func forgetBroadcasts() {
        for number in rows.firstNumber..<rows.endNumber where bytes > Self.mostBytes / 2 {
            bytes -= rows[number].bytes
            if rows[number].insert != nil { rows[number].insert = .null }
        }
    }
}

/// A first-in-first-out queue that numbers its elements from 0.
private struct NumberedQueue<Element> {
    private var items: [Element] = []
    /// The number of removed elements at the start of `items`.
    private var gone = 0
    private(set) var firstNumber = 0

    var count: Int { items.count - gone }
    /// The number of the next element.
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

    /// Returns the last elements, at most this many, in their order.
    func newest(_ most: Int) -> ArraySlice<Element> { items[gone...].suffix(most) }

    /// Returns the last elements that meet a condition, in their order.
    func newest(while meets: (Element) -> Bool) -> ArraySlice<Element> {
        var start = items.endIndex
        while start > gone, meets(items[start - 1]) { start -= 1 }
        return items[start...]
    }
}

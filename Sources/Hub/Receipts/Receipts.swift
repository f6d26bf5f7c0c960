import Wire

/// Which sockets were sent which message rows, and what they have proven of them: the answer to "does he know?".
///
/// A pong is the proof (`AcknowledgementState`): it answers a ping that was sent behind the row. What was sent is noted once for each
/// group of subscribers and not for each socket; a socket is looked at when somebody asks for its user.
///
/// **Bounds**: the last rows are noted (`SentRows.capacity`), and a question is forgotten when its time is over. A row that is not
/// noted any more counts as not sent, so that its user is alerted.
package struct Receipts {
    /// Nil: nobody asks.
    let registry: ReceiptRegistry?
    private var sent = SentRows()
    private var open: [Int: OpenReceipt] = [:]
    /// The open ones that a socket may prove.
    private var bySlot: [Slot: [Int]] = [:]
    private var serial = 0
    private var answers: [ReceiptAnswer] = []
    /// Nil: no receipts are written back.
    private var tracker: ReceiptTracker?

    init(registry: ReceiptRegistry?, log: ReceiptLog? = nil) {
        self.registry = registry
        tracker = log.map { ReceiptTracker(log: $0) }
    }

    var isNoting: Bool { registry != nil || tracker != nil }
    var areWritten: Bool { tracker != nil }

    // MARK: What was sent

    /// A row went to a group of subscribers.
    mutating func note(_ delivery: ChangeDelivery, at moment: @autoclosure () -> Int, _ now: Int64) {
        guard delivery.message != nil && registry != nil || delivery.receipt != nil && tracker != nil else { return }
        let moment = moment()
        if let change = delivery.message, registry != nil {
            sent.append(
                SentRow(change: change, moment: moment, audience: .group(delivery.group, delivery.recipients)))
        }
        if let row = delivery.receipt { tracker?.note(row, to: delivery.group, delivery.recipients, at: moment, now) }
    }

    /// It went to one member, as what it missed.
    mutating func noteMissed(
        _ delivery: ChangeDelivery, to membership: Membership, at moment: @autoclosure () -> Int, _ now: Int64
    ) {
        if let change = delivery.message, let registry, registry.awaitsReceipt(of: change) {
            sent.append(SentRow(change: change, moment: moment(), audience: .member(membership.member)))
        }
        if let row = delivery.receipt, tracker != nil { tracker?.note(row, to: membership.member, at: moment(), now) }
    }

    /// A message about an insert went to a channel.
    mutating func note(_ insert: JSON, to channel: ChannelKey, at moment: Int, _ now: Int64) {
        if registry != nil { sent.append(SentRow(change: 0, moment: moment, audience: .channel(channel, insert))) }
        tracker?.note(insert, to: channel, at: moment, now)
    }

    // MARK: What is written back

    /// Whether a socket was sent rows whose receipts are written back, and has not proven them.
    func areOwed(by connection: Connection) -> Bool { tracker?.isOwedProof(by: connection) ?? false }

    /// A socket answers its last ping. To be called before that counts.
    mutating func write(provenBy connection: Connection, _ hub: inout HubContext) {
        tracker?.proves(connection, &hub)
    }

    // MARK: Questions

    /// Answers what is known, and has the sockets asked for the rest.
    ///
    /// - Parameter moment: as `SessionRegistry.moment` counts; now.
    mutating func ask(_ questions: [ReceiptQuestion], at moment: Int, _ hub: inout HubContext) {
        var rows: (change: Int64, sent: [SentRow])?
        for question in questions {
            if question.asksForLife {
                ask(question, &hub) { Sending(connection: $0, membership: nil, moment: moment) }
                continue
            }
            // A message has one question for each of its readers.
            if rows?.change != question.change { rows = (question.change, sent.rows(of: question)) }
            ask(question, &hub) { Self.sending(of: rows?.sent ?? [], to: $0) }
        }
        sendAnswers()
    }

    /// - Parameter sending: how a socket was sent what the question is about; nil where it was not.
    private mutating func ask(
        _ question: ReceiptQuestion, _ hub: inout HubContext, sending: (Connection) -> Sending?
    ) {
        var sendings: [Sending] = []
        var (isSent, isReceived) = (false, false)
        for slot in question.slots {
            guard let connection = hub.connection(slot), connection.user == question.user,
                let sending = sending(connection)
            else { continue }
            isSent = true
            guard !question.demandsShown || connection.isShown else { continue }
            if sending.isProven(at: hub.now.monotonic) {
                isReceived = true
                if connection.isShown { return note(question, .shown, hub.loop) }
            }
            sendings.append(sending)
        }
        if isReceived { return note(question, .received, hub.loop) }
        guard isSent else { return note(question, .unheard, hub.loop) }
        guard !sendings.isEmpty else { return note(question, .hidden, hub.loop) }
        serial += 1
        open[serial] = OpenReceipt(question: question, sendings: sendings)
        for sending in sendings {
            let connection = sending.connection
            bySlot[connection.slot, default: []].append(serial)
            askForProof(by: connection, &hub)
        }
    }

    /// How the first of some rows was sent to a socket; nil where none was.
    private static func sending(of rows: [SentRow], to connection: Connection) -> Sending? {
        for row in rows {
            for membership in connection.memberships where row.isSent(to: membership) {
                return Sending(connection: connection, membership: membership, moment: row.moment)
            }
        }
        return nil
    }

    /// One ping at a time, as only the answer to the last counts: where one is under way from before, its answer asks again.
    private func askForProof(by connection: Connection, _ hub: inout HubContext) {
        guard connection.openPing == nil else { return }
        connection.isAskedForReceipts = true
        hub.actions.append(.ping([SocketPlace(loop: hub.loop, slot: connection.slot)]))
    }

    // MARK: What becomes of them

    /// A socket has proven something.
    mutating func proved(_ connection: Connection, _ hub: inout HubContext) {
        guard let ids = bySlot[connection.slot] else { return }
        var asksAgain = false
        for id in ids {
            guard let receipt = open[id], let sending = receipt.sending(to: connection) else { continue }
            if sending.isProven(at: hub.now.monotonic) {
                close(id)
                note(receipt.question, connection.isShown ? .shown : .received, hub.loop)
            } else if !sending.isAcknowledged {
                asksAgain = true
            }
        }
        if asksAgain { askForProof(by: connection, &hub) }
        sendAnswers()
    }

    /// The app of a socket went from the screen.
    mutating func hid(_ connection: Connection, _ hub: inout HubContext) {
        leave(connection.slot, .hidden, hub.loop) { $0.demandsShown }
    }

    /// A socket is gone.
    mutating func closed(_ slot: Slot, _ hub: inout HubContext) {
        tracker?.closed(slot)
        leave(slot, .lost, hub.loop) { _ in true }
    }

    private mutating func leave(
        _ slot: Slot, _ verdict: ReceiptAnswer.Verdict, _ loop: Int, where isMeant: (ReceiptQuestion) -> Bool
    ) {
        guard let ids = bySlot[slot] else { return }
        for id in ids {
            guard let question = open[id]?.question, isMeant(question) else { continue }
            open[id]?.sendings.removeAll { $0.connection.slot == slot }
            forget(id, of: slot)
            guard open[id]?.sendings.isEmpty == true else { continue }
            close(id)
            note(question, verdict, loop)
        }
        sendAnswers()
    }

    /// Forgets questions whose time is over. To be called once a second.
    mutating func advance(to now: Int64) {
        for (id, receipt) in open where receipt.question.until <= now { close(id) }
        tracker?.advance(to: now)
    }

    private mutating func close(_ id: Int) {
        guard let receipt = open.removeValue(forKey: id) else { return }
        for sending in receipt.sendings { forget(id, of: sending.connection.slot) }
    }

    private mutating func forget(_ id: Int, of slot: Slot) {
        bySlot[slot]?.removeAll { $0 == id }
        if bySlot[slot]?.isEmpty == true { bySlot[slot] = nil }
    }

    private mutating func note(_ question: ReceiptQuestion, _ verdict: ReceiptAnswer.Verdict, _ loop: Int) {
        answers.append(
            ReceiptAnswer(change: question.change, user: question.user, loop: loop, verdict: verdict))
    }

    private mutating func sendAnswers() {
        guard !answers.isEmpty else { return }
        registry?.send(answers)
        answers.removeAll()
    }
}

/// A question whose answer the sockets' proof decides.
private struct OpenReceipt {
    let question: ReceiptQuestion
    /// To the sockets that may prove it; one at least.
    var sendings: [Sending]

    func sending(to connection: Connection) -> Sending? {
        sendings.first { $0.connection === connection }
    }
}

/// What was sent to a socket, and when (`SessionRegistry.moment`).
private struct Sending {
    let connection: Connection
    /// The member that it was for; nil where it is only asked whether somebody is there.
    let membership: Membership?
    let moment: Int

    /// Something was answered that was asked behind it.
    var isAcknowledged: Bool { connection.acknowledged.map { $0.latest.moment > moment } ?? false }

    /// A client that may have given its join up answers pings, and takes nothing of what comes.
    func isProven(at now: Int64) -> Bool {
        isAcknowledged && membership?.recovery?.session.isBelieved(at: now) ?? true
    }
}

/// A row that was sent: by what, when, and to whom.
struct SentRow {
    enum Audience {
        case group(ChangeGroupID, ChangeDelivery.Recipients)
        case member(MemberID)
        /// By a message of `realtime.broadcast_changes`.
        case channel(ChannelKey, JSON)
    }

    /// `RowChange.id`; 0 where a broadcast told it.
    let change: Int64
    /// As `SessionRegistry.moment` counts.
    let moment: Int
    var audience: Audience

    /// Roughly what it keeps of the message.
    var bytes: Int { if case .channel(_, let insert) = audience { insert.bytes.count } else { 0 } }

    func isSent(to membership: Membership) -> Bool {
        switch audience {
        case .member(let member): return membership.member == member
        case .group(let group, let recipients):
            return membership.rows?.group.id == group && membership.hearsRows(for: recipients, sentAt: moment)
        case .channel(let channel, _):
            return membership.channel.key == channel && membership.hearsBroadcasts(sentAt: moment)
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

/// The last rows that a loop has sent, the oldest of which gives way to the next.
struct SentRows {
    private var rows: [SentRow] = []
    private var next = 0
    private var bytes = 0
    /// At 1,000 messages a second those of eight seconds; their receipts are asked for within milliseconds, unless Postgres is slow.
    static let capacity = 8192
    /// What broadcasts of rows may take, which are kept whole.
    static let mostBytes = 8 << 20

    mutating func append(_ row: SentRow) {
        bytes += row.bytes
        if rows.count == Self.capacity {
            bytes -= rows[next].bytes
            rows[next] = row
            next = (next + 1) % Self.capacity
        } else {
            rows.append(row)
        }
        if bytes > Self.mostBytes { forgetBroadcasts() }
    }

    /// Forgets the older half.
    private mutating func forgetBroadcasts() {
        for offset in rows.indices where bytes > Self.mostBytes / 2 {
            let index = (next + offset) % rows.count
            guard case .channel(let channel, _) = rows[index].audience else { continue }
            bytes -= rows[index].bytes
            rows[index].audience = .channel(channel, .null)
            bytes += rows[index].bytes
        }
    }

    /// Those that told a question's row.
    func rows(of question: ReceiptQuestion) -> [SentRow] {
        rows.filter { row in
            if case .channel(_, let insert) = row.audience { return question.row.isMeant(by: insert) }
            return row.change == question.change
        }
    }
}

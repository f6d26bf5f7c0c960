import Wire

/// Records which sockets were sent which message rows, and what they have proven: the answer to "does the user know?".
///
/// A pong is the proof (`AcknowledgementState`): it answers a ping that was sent after the row. Sending is recorded
/// once per group of subscribers and not per socket (`SentRows`); a socket is looked at when its user is asked about. A
/// row that waits for a policy or a filter is in `WaitingMessages`.
///
/// **Bounds**: only the latest rows are recorded, and a question is dropped when it expires. A row that is no longer
/// recorded counts as not sent, so that its user is alerted.
package struct Receipts {
    /// Nil if no questions are asked.
    let registry: ReceiptRegistry?
    private var sent: SentRows
    private var waiting = WaitingMessages()
    private var open: [Int: OpenReceipt] = [:]
    /// Open questions that each socket may answer.
    private var bySlot: [Slot: [Int]] = [:]
    private var serial = 0
    private var answers: [ReceiptAnswer] = []
    /// Nil if no receipts are written back.
    private var tracker: ReceiptTracker?

    init(registry: ReceiptRegistry?, log: ReceiptLog? = nil) {
        self.registry = registry
        tracker = log.map { ReceiptTracker(log: $0) }
        sent = SentRows(areWritten: log != nil)
    }

    var isNoting: Bool { registry != nil || tracker != nil }
    var areWritten: Bool { tracker != nil }

    // MARK: Sent rows

    /// Records that a row was sent to a group of subscribers.
    mutating func recordChange(_ delivery: ChangeDelivery, at moment: @autoclosure () -> Int, _ now: Int64) {
        recordChange(
            delivery, isAsked: registry != nil, to: .group(delivery.group), delivery.recipients, at: moment(), now)
    }

    /// Records that a row was sent to one member, as a missed change.
    mutating func recordMissed(
        _ delivery: ChangeDelivery, to membership: Membership, at moment: @autoclosure () -> Int, _ now: Int64
    ) {
        let isAsked = delivery.message.flatMap { registry?.awaitsReceipt(of: $0) } ?? false
        recordChange(delivery, isAsked: isAsked, to: .member(membership.member), .everybody, at: moment(), now)
    }

    private mutating func recordChange(
        _ delivery: ChangeDelivery, isAsked: Bool, to audience: SentRow.Audience,
        _ recipients: ChangeDelivery.Recipients, at moment: @autoclosure () -> Int, _ now: Int64
    ) {
        let change = isAsked ? delivery.message ?? 0 : 0
        let receipt = tracker == nil ? nil : delivery.receipt
        guard change != 0 || receipt != nil else { return }
        sent.append(
            SentRow(
                change: change, moment: moment(), at: now, audience: audience, recipients: recipients, receipt: receipt)
        )
    }

    /// Records that a message about an insert was sent to a channel.
    mutating func recordInsert(_ insert: JSON, to channel: ChannelKey, at moment: Int, _ now: Int64) {
        let receipt = tracker?.log.tables.row(of: insert)
        guard registry != nil || receipt != nil else { return }
        sent.append(
            SentRow(
                moment: moment, at: now, audience: .channel(channel), receipt: receipt,
                insert: registry == nil ? nil : insert))
    }

    /// Updates for whom a message waits before it can be sent.
    mutating func updateWaits(_ change: Int64, _ waits: [MessageWait], _ hub: inout HubContext) {
        guard registry != nil else { return }
        askAgain(waiting.updateWaits(change, waits, at: hub.now.monotonic), &hub)
    }

    // MARK: Receipts written back

    /// Whether a socket was sent rows whose receipts are written back, and has not proven them.
    func areOwed(by connection: Connection) -> Bool { tracker?.isOwedProof(by: connection, of: sent) ?? false }

    /// Records the receipts in a socket's answer to its last ping. Call before the answer counts as an acknowledgement.
    mutating func recordReceipts(provenBy connection: Connection, _ hub: inout HubContext) {
        tracker?.recordProof(connection, sent, &hub)
    }

    // MARK: Questions

    /// Answers what is known, and asks the sockets for the rest.
    ///
    /// - Parameter moment: the current moment, as counted by `SessionRegistry.moment`.
    mutating func askQuestions(_ questions: [ReceiptQuestion], at moment: Int, _ hub: inout HubContext) {
        var rows: (change: Int64, sent: [SentRow])?
        for question in questions {
            if question.asksForLife {
                askQuestion(question, &hub) { Sending(connection: $0, membership: nil, moment: moment) }
                continue
            }
            // A message has one question for each of its recipients.
            if rows?.change != question.change { rows = (question.change, sent.rows(of: question)) }
            askQuestion(question, &hub) { Self.sending(of: rows?.sent ?? [], to: $0) }
        }
        sendAnswers()
    }

    /// - Parameter sending: how the subject of the question was sent to a socket; nil if it was not.
    private mutating func askQuestion(
        _ question: ReceiptQuestion, _ hub: inout HubContext, sending: (Connection) -> Sending?
    ) {
        var sendings: [Sending] = []
        var (isSent, isReceived, isWaiting) = (false, false, false)
        for slot in question.slots {
            guard let connection = hub.connection(slot), question.isFor(connection) else { continue }
            guard let sending = sending(connection) else {
                isWaiting =
                    isWaiting
                    || (connection.isShown || !question.demandsShown)
                        && waiting.mayReach(connection, question.change)
                continue
            }
            isSent = true
            guard !question.demandsShown || connection.isShown else { continue }
            if sending.isProven(at: hub.now.monotonic) {
                isReceived = true
                if connection.isShown { return recordAnswer(question, .shown, hub.loop) }
            }
            sendings.append(sending)
        }
        if isReceived { return recordAnswer(question, .received, hub.loop) }
        if isWaiting {
            waiting.keepQuestion(question)
            if sendings.isEmpty { return }
        }
        guard isSent else { return recordAnswer(question, .unheard, hub.loop) }
        guard !sendings.isEmpty else { return recordAnswer(question, .hidden, hub.loop) }
        serial += 1
        open[serial] = OpenReceipt(question: question, sendings: sendings)
        for sending in sendings {
            let connection = sending.connection
            bySlot[connection.slot, default: []].append(serial)
            askForProof(by: connection, &hub)
        }
    }

    /// Asks questions again after an event that their answers waited for.
    private mutating func askAgain(_ questions: [ReceiptQuestion], _ hub: inout HubContext) {
        for question in questions where question.until > hub.now.monotonic {
            for id in Set(question.slots.flatMap { bySlot[$0] ?? [] })
            where open[id]?.question.isSame(as: question) == true { closeQuestion(id) }
            let rows = sent.rows(of: question)
            askQuestion(question, &hub) { Self.sending(of: rows, to: $0) }
        }
        sendAnswers()
    }

    /// Returns how the first of some rows was sent to a socket; nil if none was.
    private static func sending(of rows: [SentRow], to connection: Connection) -> Sending? {
        for row in rows {
            for membership in connection.memberships where row.isSent(to: membership) {
                return Sending(connection: connection, membership: membership, moment: row.moment)
            }
        }
        return nil
    }

    /// Pings a socket for proof. Only the answer to the last ping counts, so there is one at a time: if one is on its
    /// way, its answer asks again.
    private func askForProof(by connection: Connection, _ hub: inout HubContext) {
        guard connection.openPing == nil else { return }
        connection.isAskedForReceipts = true
        hub.actions.append(.ping([SocketPlace(loop: hub.loop, slot: connection.slot)]))
    }

    // MARK: Events of sockets

    /// Closes the questions that a socket's answer has settled.
    mutating func handleProof(_ connection: Connection, _ hub: inout HubContext) {
        guard let ids = bySlot[connection.slot] else { return }
        var asksAgain = false
        for id in ids {
            guard let receipt = open[id], let sending = receipt.sending(to: connection) else { continue }
            if sending.isProven(at: hub.now.monotonic) {
                closeQuestion(id)
                recordAnswer(receipt.question, connection.isShown ? .shown : .received, hub.loop)
            } else if !sending.isAcknowledged {
                asksAgain = true
            }
        }
        if asksAgain { askForProof(by: connection, &hub) }
        sendAnswers()
    }

    /// Handles an app that has left the screen.
    mutating func appHidden(_ connection: Connection, _ hub: inout HubContext) {
        closeQuestions(connection.slot, .hidden, hub.loop) { $0.demandsShown }
        askAgain(waiting.takeQuestions(to: connection.slot), &hub)
    }

    /// Handles a closed socket.
    mutating func socketClosed(_ slot: Slot, _ hub: inout HubContext) {
        tracker?.socketClosed(slot)
        closeQuestions(slot, .lost, hub.loop) { _ in true }
        for question in waiting.takeQuestions(to: slot) {
            let left = question.without(slot)
            if left.slots.isEmpty { recordAnswer(left, .lost, hub.loop) } else { askAgain([left], &hub) }
        }
        sendAnswers()
    }

    private mutating func closeQuestions(
        _ slot: Slot, _ verdict: ReceiptAnswer.Verdict, _ loop: Int, where isMeant: (ReceiptQuestion) -> Bool
    ) {
        guard let ids = bySlot[slot] else { return }
        for id in ids {
            guard let question = open[id]?.question, isMeant(question) else { continue }
            open[id]?.sendings.removeAll { $0.connection.slot == slot }
            removeQuestion(id, of: slot)
            guard open[id]?.sendings.isEmpty == true else { continue }
            closeQuestion(id)
            // Another socket may still be sent the row.
            if !waiting.containsQuestion(question) { recordAnswer(question, verdict, loop) }
        }
        sendAnswers()
    }

    /// Drops expired questions. Call once a second.
    mutating func advanceTime(to now: Int64) {
        for (id, receipt) in open where receipt.question.until <= now { closeQuestion(id) }
        sent.advanceTime(to: now)
        waiting.advanceTime(to: now)
    }

    private mutating func closeQuestion(_ id: Int) {
        guard let receipt = open.removeValue(forKey: id) else { return }
        for sending in receipt.sendings { removeQuestion(id, of: sending.connection.slot) }
    }

    private mutating func removeQuestion(_ id: Int, of slot: Slot) {
        bySlot[slot]?.removeAll { $0 == id }
        if bySlot[slot]?.isEmpty == true { bySlot[slot] = nil }
    }

    private mutating func recordAnswer(_ question: ReceiptQuestion, _ verdict: ReceiptAnswer.Verdict, _ loop: Int) {
        answers.append(
            ReceiptAnswer(
                change: question.change, user: question.user, device: question.device, loop: loop, verdict: verdict))
    }

    private mutating func sendAnswers() {
        guard !answers.isEmpty else { return }
        registry?.forwardAnswers(answers)
        answers.removeAll()
    }
}

/// A question that the sockets' proof will answer.
private struct OpenReceipt {
    let question: ReceiptQuestion
    /// To the sockets that may prove receipt; at least one.
    var sendings: [Sending]

    func sending(to connection: Connection) -> Sending? {
        sendings.first { $0.connection === connection }
    }
}

/// Something that was sent to a socket, and when (`SessionRegistry.moment`).
private struct Sending {
    let connection: Connection
    /// The member it was sent to; nil if the question asks only for a sign of life.
    let membership: Membership?
    let moment: Int

    /// The socket has answered a ping sent after it.
    var isAcknowledged: Bool { connection.acknowledged.map { $0.latest.moment > moment } ?? false }

    /// A client that may have given its join up answers pings but ignores what it is sent.
    func isProven(at now: Int64) -> Bool {
        isAcknowledged && membership?.recovery?.session.isBelieved(at: now) ?? true
    }
}

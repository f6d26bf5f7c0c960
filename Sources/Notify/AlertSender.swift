import Hub
import Matching
import Push
import Stores
import Wire

/// Alerts: puts them into the queue in Postgres, takes those that are due, sends them, and stores their outcomes. Confined to the
/// worker's thread.
final class AlertSender {
    private let context: PushContext
    private var decider: AlertDecider
    /// Users with alerts in flight, and the number of each.
    private var busy: [Name: Int] = [:]
    /// Decisions on alerts in the queue that are not stored yet.
    private var verdicts: [AlertVerdict] = []
    /// Phones that already have an alert's message, and are not sent the alert.
    private var spared: [SparedPhones] = []
    private var settlements: [AlertSettlement] = []
    /// Alerts that never left, and must be sent another time.
    private var returned: [AlertSettlement] = []
    /// The time of the next look into the queue, in milliseconds since 1970; nil if nothing is queued.
    private(set) var dueAt: Int64?
    /// Alerts queued.
    private(set) var enqueued = 0
    /// Alerts handed over for sending, counted once for each phone.
    private(set) var sent = 0
    /// Alerts that no longer had to be sent: their user has the message, or they expired, or there was no phone.
    private(set) var dropped = 0
    /// Decisions, by reason.
    private(set) var reasons: [AlertReason: Int] = [:]
    /// The times that apps took to prove messages, from the question.
    private(set) var proofs = Histogram.ofLatency

    /// A killed hub does not know which of its taken alerts had left, so it takes no more than this of each kind.
    private static let mostTaken = 500
    /// A kind with less room than this waits for more: otherwise alerts would be taken one by one.
    private static let leastTaken = 20
    /// The wait for users with an alert already in flight, in milliseconds.
    private static let retry: Int64 = 1000
    private static let questionsAtOnce = 256
    /// An alert that could not be sent for this many milliseconds is not sent to a user who has come back in the meantime.
    private static let lateness: Int64 = 60_000

    init(_ context: PushContext) {
        self.context = context
        decider = AlertDecider(context.rules.condition, proof: context.rules.proof)
    }

    /// Whether an alert waits for a proof, for its user to come back, or for another hub.
    var isWaiting: Bool { !decider.isEmpty }
    /// The time when a waiting alert must be decided on, in monotonic milliseconds.
    var nextDecision: Int64? { decider.nextDue }

    /// Looks into the queue at the next turn, because alerts may be due.
    func lookNow() { dueAt = 0 }

    func adopt(_ rules: PushRules) { (decider.condition, decider.proof) = (rules.condition, rules.proof) }

    /// Resumes where the hub's last process ended.
    func resume(_ store: PushStore) throws {
        let now = context.now
        let unanswered = try store.resumeAlerts(
            heldUntil: now.unix + max(0, context.restartUntil - now.monotonic))
        if unanswered > 0 {
            context.logger.warning(
                """
                \(unanswered) alerts were on their way when this hub ended, and it is not known whether they arrived; \
                they are not sent again.
                """)
        }
        try refreshWaiting(store)
    }

    /// Takes over the waiting alerts of the queue, and forgets those that no longer wait.
    func refreshWaiting(_ store: PushStore) throws {
        // Decisions that are not stored yet would come back as waiting.
        try writeVerdicts(store)
        let waiting = try store.waitingAlerts()
        let now = context.now
        var keys: Set<AlertDecider.Key> = []
        let phones = try phones(of: waiting.map(\.user), store)
        for alert in waiting {
            let key = AlertDecider.Key(message: alert.message, user: alert.user)
            keys.insert(key)
            if let until = alert.heldUntil {
                decider.waitAgain(
                    key, alert.place, phones: phones?[alert.user], until: now.monotonic + max(0, until - now.unix),
                    at: now.monotonic)
            } else {
                decider.waitElsewhere(key, alert.place, phones: phones?[alert.user], at: now.monotonic)
            }
        }
        decider.keep(keys)
        context.presence.receipts.awaitReceipts(of: decider.changes)
    }

    /// Gives back alerts that this hub took without learning of it: the connection ended before the answer came.
    func takeBackUnheardOf(_ store: PushStore) throws {
        let unsettled = try store.unsettledAlerts()
        guard !unsettled.isEmpty else { return }
        let known = Set(
            (settlements + returned).lazy.map { UnsettledAlert(message: $0.message, destination: $0.destination) })
        let unheardOf = unsettled.filter { alert in
            !known.contains(alert) && !context.outbox.isInFlight(PushID(of: alert.message, to: alert.destination))
        }
        guard !unheardOf.isEmpty else { return }
        try store.giveBack(
            unheardOf.map { AlertSettlement(message: $0.message, destination: $0.destination, outcome: "") })
        context.logger.notice(
            "\(unheardOf.count) alerts were taken for this hub as its connection to Postgres ended; they are sent now.")
        lookNow()
    }

    /// Hands this hub's held alerts to other hubs, because it ends.
    func handOver(_ store: PushStore) throws {
        try writeVerdicts(store)
        if isWaiting { try store.handOver(within: context.rules.restartWindow) }
    }

    // MARK: Into the queue

    /// Queues the alerts for the members of an audience, and asks their sockets whether they have the messages.
    func enqueue(_ members: [(AudienceMember, RowChange)], _ store: PushStore) throws {
        let time = context.now
        var drafts: [AlertDraft] = []
        var subjects: [AlertDecider.Key: (change: Int64, subject: AlertDecider.Subject)] = [:]
        var steps = AlertDecider.Steps()
        let sockets = sockets
        let phones = try phones(of: members.lazy.filter { $0.0.hasDevice }.map(\.0.user), store)
        for (member, change) in members where member.hasDevice && !member.isMuted {
            let notification = MessageNotification(
                member.variables, badge: member.badge, preview: context.rules.preview)
            let expiresAt = min(time.unix, change.committedAtMilliseconds ?? time.unix) + context.rules.alertLife
            guard notification.sender != member.user, expiresAt > time.unix else { continue }
            let key = AlertDecider.Key(message: change.messageKey, user: member.user)
            guard subjects[key] == nil else { continue }
            let subject = subject(of: change, notification)
            subjects[key] = (change.id, subject)
            var verdict = AlertDecider.Verdict(key: key, state: .due, reason: .always, waited: 0)
            if notification.isSentAlways {
                steps.verdicts.append(verdict)
            } else {
                if let phones = phones?[member.user] {
                    decider.decide(
                        key, change.id, subject, phones: phones, sockets: sockets, at: time.monotonic, &steps)
                } else {
                    decider.decide(key, change.id, subject, sockets(key), at: time.monotonic, &steps)
                }
                verdict = steps.verdicts.last ?? verdict
            }
            var variables = notification.variables
            if let badge = member.badge { variables.set("badge", badge) }
            if let id = change.messageID { variables.set("message_id", id) }
            variables.note(table: change.table)
            drafts.append(
                AlertDraft(
                    message: key.message, user: key.user, conversation: notification.conversation,
                    variables: variables.json, expiresAt: expiresAt, state: state(verdict.state, at: time),
                    reason: verdict.reason, place: change.id, written: context.rules.written(change)))
        }
        guard !drafts.isEmpty else { return }
        // Done first: another hub may take an alert as soon as it is in the queue.
        try store.spare(steps.spared)
        let put = try store.enqueue(drafts)
        enqueued += put.count(where: \.isNew)
        for verdict in steps.verdicts { count(verdict) }
        for alert in put {
            let key = AlertDecider.Key(message: alert.message, user: alert.user)
            guard let (change, subject) = subjects.removeValue(forKey: key), alert.isElsewhere else { continue }
            decider.waitElsewhere(key, change, subject, phones: phones?[alert.user], at: time.monotonic)
        }
        // These were there before, because the message is read again, or its alerts are queued again after the answer was lost. Alerts
        // held then are decided now, and no other hub would do it.
        for draft in drafts where subjects[AlertDecider.Key(message: draft.message, user: draft.user)] != nil {
            if case .held = draft.state { continue }
            verdicts.append(
                AlertVerdict(message: draft.message, user: draft.user, state: draft.state, reason: draft.reason))
        }
        context.presence.receipts.awaitReceipts(of: decider.changes)
        ask(steps)
    }

    private func subject(of change: RowChange, _ notification: MessageNotification) -> AlertDecider.Subject {
        guard let wanted = notification.condition else {
            return AlertDecider.Subject(row: change.identity, condition: decider.condition)
        }
        return AlertDecider.Subject(
            row: .unknown, condition: decider.condition == .away ? .away : wanted, asksForLife: true)
    }

    /// Returns the sessions that users' phones are registered with; nil if all devices of a user are judged together.
    private func phones(of users: [Name], _ store: PushStore) throws -> [Name: [Name?]]? {
        guard context.rules.devices == .each, !users.isEmpty else { return nil }
        return try store.sessionsOfPhones(of: Set(users))
    }

    /// Returns the sockets that may prove something. A separate closure, so that the decider may call it while it changes.
    private var sockets: (AlertDecider.Key) -> UserSockets {
        let (presence, now, restartUntil) = (context.presence, context.now.monotonic, context.restartUntil)
        let demandsShown = decider.condition == .unseen
        return { key in
            presence.sockets(
                of: key.user, session: key.device, demandsShown: demandsShown, isRestarting: now < restartUntil)
        }
    }

    private func state(_ state: AlertDecider.State, at time: HubTime) -> AlertDraft.State {
        switch state {
        case .due: .due
        case .held(let until): .held(until: time.unix + max(0, until - time.monotonic))
        case .dropped: .dropped
        }
    }

    private func count(_ verdict: AlertDecider.Verdict) {
        if case .held = verdict.state { return }
        reasons[verdict.reason, default: 0] += 1
        if verdict.reason == .shown || verdict.reason == .received {
            proofs.recordDuration(nanoseconds: verdict.waited * 1_000_000)
        }
    }

    private func ask(_ steps: AlertDecider.Steps) {
        for (loop, questions) in steps.questions {
            // A loop has other things to do in between.
            for start in stride(from: 0, to: questions.count, by: Self.questionsAtOnce) {
                context.ask(Array(questions[start..<min(start + Self.questionsAtOnce, questions.count)]), loop)
            }
        }
    }

    // MARK: Waiting

    /// Takes the answers of sockets about the messages that their users have.
    func take(_ answers: [ReceiptAnswer]) {
        let time = context.now
        var steps = AlertDecider.Steps()
        let sockets = sockets
        for answer in answers { decider.take(answer, at: time.monotonic, sockets: sockets, &steps) }
        carryOut(steps, at: time)
    }

    /// Decides on alerts whose wait is over.
    func advance() {
        let time = context.now
        guard let due = decider.nextDue, due <= time.monotonic else { return }
        var steps = AlertDecider.Steps()
        let sockets = sockets
        decider.advance(at: time.monotonic, sockets: sockets, &steps)
        carryOut(steps, at: time)
    }

    private func carryOut(_ steps: AlertDecider.Steps, at time: HubTime) {
        spared += steps.spared
        for verdict in steps.verdicts {
            count(verdict)
            verdicts.append(
                AlertVerdict(
                    message: verdict.key.message, user: verdict.key.user, state: state(verdict.state, at: time),
                    reason: verdict.reason))
        }
        ask(steps)
    }

    /// Stores decisions.
    private func writeVerdicts(_ store: PushStore) throws {
        try store.spare(spared)
        spared = []
        guard !verdicts.isEmpty else { return }
        dropped += try store.decide(verdicts)
        verdicts = []
        context.presence.receipts.awaitReceipts(of: decider.changes)
        lookNow()
    }

    // MARK: Out of the queue

    /// Takes the due alerts out of the queue, as many as there is room for, and sends them.
    func sendDue(_ store: PushStore) throws {
        guard let dueAt, dueAt <= context.now.unix else { return }
        while context.maySend {
            let rooms = context.outbox.kinds.map { ($0, context.outbox.room(for: $0, most: Self.mostTaken)) }
            let full = Set(rooms.filter { $0.1 < Self.leastTaken }.map(\.0))
            // The next outcome makes room, and brings the worker back here.
            guard let free = rooms.lazy.map(\.1).filter({ $0 >= Self.leastTaken }).min() else { return }
            let limit = min(free, 100)
            // While one service is away, users without a device of it still get their alerts.
            let taken = try store.takeDue(limit: limit, except: Set(busy.keys), full: full)
            dropped += taken.expired + taken.withoutDevice
            send(taken.alerts, try timedVerdicts(on: taken.alerts, store))
            if context.rules.badge != nil, !taken.alerts.isEmpty {
                try store.forgetBadges(of: Set(taken.alerts.map(\.user)))
            }
            if taken.count < limit { break }
        }
        // The due alerts left behind belong to users with an alert in flight, whose outcome comes first.
        self.dueAt = try store.nextDue().map { max($0, context.now.unix + Self.retry) }
    }

    /// Asks for the present state of rows whose time has come. If that fails, the alerts go back into the queue.
    private func timedVerdicts(on alerts: [DueAlert], _ store: PushStore) throws -> TimedVerdicts {
        do { return try TimedVerdicts(on: alerts, context.timedTables, store) } catch {
            for alert in alerts { giveBack(alert) }
            throw error
        }
    }

    private func giveBack(_ alert: DueAlert) {
        returned += alert.devices.map {
            AlertSettlement(message: alert.message, destination: $0.destination, outcome: "returned")
        }
    }

    /// Notes alerts queued by another feature.
    func noteEnqueued(_ count: Int) { enqueued += count }

    private func send(_ alerts: [DueAlert], _ timed: TimedVerdicts) {
        var pushes: [(push: Push, about: InFlightPush)] = []
        for alert in alerts {
            let variables = TemplateVariables(JSON(trusted: alert.variables[...]))
            guard !timed.unknown.contains(alert.message) else {
                giveBack(alert)
                continue
            }
            // A time that has come is announced by no socket.
            let isBack = !variables.isSentAlways && hasReturned(alert) && !timed.due.contains(alert.message)
            let isOver = timed.over.contains(alert.message)
            let payload = context.rules.payload(of: alert, variables)
            let tag = alert.tag(variables.collapseID)
            var rendered: [PushKind: [UInt8]] = [:]
            for device in alert.devices {
                let outcome: String
                if isOver {
                    outcome = "withdrawn"
                } else if isBack {
                    outcome = AlertReason.returned.rawValue
                } else if context.outbox.isBad(device.destination.token) {
                    outcome = "bad token"
                } else if !context.outbox.kinds.contains(device.destination.kind) {
                    outcome = "\(device.destination.kind) is not configured"
                } else if let bytes = rendered[device.destination.kind]
                    ?? fitted(payload, for: device.destination.kind, tag: tag)
                {
                    rendered[device.destination.kind] = bytes
                    let push = alert.push(to: device, bytes, collapseID: variables.collapseID)
                    busy[alert.user, default: 0] += 1
                    pushes.append((push, .alert(message: alert.message, user: alert.user)))
                    continue
                } else {
                    outcome = "too large"
                }
                settlements.append(
                    AlertSettlement(message: alert.message, destination: device.destination, outcome: outcome))
            }
        }
        sent += pushes.count
        context.outbox.send(pushes)
    }

    /// Whether the user came back after the message, while its alert could not be sent, for example because Apple was away. Considered
    /// only if an open socket of any device is enough: a socket proves no message.
    private func hasReturned(_ alert: DueAlert) -> Bool {
        guard decider.condition == .away, context.rules.devices == .together else { return false }
        let age = context.now.unix - (alert.expiresAt - context.rules.alertLife)
        return age >= Self.lateness
            && !context.presence.users.sockets(of: alert.user, demandsShown: false).places.isEmpty
    }

    private func fitted(_ payload: AlertPayload, for kind: PushKind, tag: String) -> [UInt8]? {
        do {
            return try payload.fitted(for: kind, tag: tag, context.rules.android).bytes
        } catch {
            context.logger.warning("An alert is not sent: \(error)")
            return nil
        }
    }

    // MARK: Outcomes

    func finished(_ message: Name, _ user: Name, _ push: Push, _ outcome: PushOutcome) {
        if case .device(let destination) = push.target {
            let settlement = AlertSettlement(message: message, destination: destination, outcome: outcome.words)
            switch outcome {
            case .stopped, .overflow: returned.append(settlement)
            default: settlements.append(settlement)
            }
        }
        busy[user] = busy[user].flatMap { $0 > 1 ? $0 - 1 : nil }
        lookNow()
    }

    /// Stores the outcomes of alerts, and decisions.
    func settle(_ store: PushStore) throws {
        try writeVerdicts(store)
        if !returned.isEmpty {
            try store.giveBack(returned)
            returned = []
        }
        if !settlements.isEmpty {
            try store.settle(settlements)
            settlements = []
        }
    }
}

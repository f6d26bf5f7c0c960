package import Hub
package import Wire

/// Decides whether to alert a user of a message. A user who has certainly received it is not alerted; an open socket proves nothing.
///
/// A phone that is judged by itself is decided on like a user. Its alert is due when all of the user's phones are decided on; those
/// that have the message are spared.
///
/// Pure: the caller reports a user's sockets and their answers, and the decider returns the alert's state and the questions to ask.
/// Time is passed in, in monotonic milliseconds.
///
/// An alert that cannot be decided at once waits here: for proof, for `proof` milliseconds at most; for the end of the window in which
/// a disconnected user may come back; or for another hub on which the user is online.
package struct AlertDecider: Sendable {
    /// The state of an alert, as far as this hub knows.
    package enum State: Sendable, Equatable {
        /// Nothing speaks against it.
        case due
        case held(until: Int64)
        case dropped
    }

    package struct Verdict: Sendable, Equatable {
        package let key: Key
        package let state: State
        package let reason: AlertReason
        /// The time that the alert waited for this, in milliseconds.
        package let waited: Int64

        package init(key: Key, state: State, reason: AlertReason, waited: Int64) {
            self.key = key
            self.state = state
            self.reason = reason
            self.waited = waited
        }
    }

    /// One message for one user, or for one of the user's phones.
    package struct Key: Hashable, Sendable {
        package let message: Name
        package let user: Name
        /// The claim `session_id` of a phone that is judged by itself; nil for all of the user's sockets.
        package let device: Name?

        package init(message: Name, user: Name, device: Name? = nil) {
            self.message = message
            self.user = user
            self.device = device
        }

        fileprivate var whole: Key { Key(message: message, user: user) }
    }

    /// The message, as far as a decision about it needs to know.
    package struct Subject: Sendable {
        package let row: MessageIdentity
        package let condition: AlertCondition
        /// The message is sent by no socket: a user whose app proves to be alive must be shown it by the app.
        package let asksForLife: Bool

        package init(row: MessageIdentity, condition: AlertCondition, asksForLife: Bool = false) {
            self.row = row
            self.condition = condition
            self.asksForLife = asksForLife
        }
    }

    /// The actions that follow from a decision.
    package struct Steps: Sendable {
        package var verdicts: [Verdict] = []
        /// Must be stored before the verdicts.
        package var spared: [SparedPhones] = []
        /// For each loop.
        package var questions: [Int: [ReceiptQuestion]] = [:]

        package init() {}
    }

    private struct Wait {
        let change: Int64
        let subject: Subject
        /// The time when the wait began.
        let began: Int64
        var phase: Phase
    }

    /// An alert whose phones are judged by themselves.
    private struct Parts {
        /// The undecided phones, each with the latest time until which it is held.
        var open: [Name?: Int64]
        /// The reason to alert a phone; nil while there is none.
        var due: AlertReason?
        var waited: Int64 = 0
    }

    private enum Phase {
        /// Not all loops have yet answered that their sockets did not, or cannot, prove it; the reason is the last one's.
        case asked(loops: Set<Int>, until: Int64, reason: AlertReason)
        /// The user may come back; sockets that exist by then are asked, and have as long as all others.
        case grace(until: Int64, lookAt: Int64)
        /// Another hub decides; sockets that the user may have here are asked, too.
        case elsewhere(lookAt: Int64)
    }

    package var condition: AlertCondition
    /// The longest wait for a proof, in milliseconds.
    package var proof: Int64
    private var waits: [Key: Wait] = [:]
    /// The messages that wait, by `RowChange.id`.
    private var keys: [Int64: Set<Key>] = [:]
    /// By the user's key.
    private var parts: [Key: Parts] = [:]

    /// Milliseconds between two checks for a user's return.
    private static let interval: Int64 = 1000

    package init(_ condition: AlertCondition, proof: Int64) {
        self.condition = condition
        self.proof = proof
    }

    package var isEmpty: Bool { waits.isEmpty }
    /// The messages that wait, by `RowChange.id`.
    package var changes: Set<Int64> { Set(keys.keys) }

    /// The time when `advance` next has something to do; nil if nothing waits for a time.
    package var nextDue: Int64? {
        waits.values.lazy.map { wait in
            switch wait.phase {
            case .asked(_, let until, _): until
            case .grace(let until, let lookAt): min(until, lookAt)
            case .elsewhere(let lookAt): lookAt
            }
        }.min()
    }

    // MARK: Decisions

    /// Decides on a message that its user should be told of.
    ///
    /// - Parameters:
    ///   - change: `RowChange.id`.
    ///   - sockets: the user's sockets on this hub.
    package mutating func decide(
        _ key: Key, _ change: Int64, _ subject: Subject, _ sockets: UserSockets, at now: Int64, _ steps: inout Steps
    ) {
        let verdict = decision(key, change, subject, sockets, at: now, &steps)
        report(verdict, &steps)
    }

    /// Decides the same if each phone is judged by itself. The last verdict is the alert's.
    ///
    /// - Parameter phones: the claims `session_id` that the user's phones were registered with; nil for those without one, which all of
    ///   the user's sockets speak for.
    package mutating func decide(
        _ key: Key, _ change: Int64, _ subject: Subject, phones: [Name?], sockets: (Key) -> UserSockets, at now: Int64,
        _ steps: inout Steps
    ) {
        parts[key] = Parts(open: Dictionary(phones.map { ($0, now) }, uniquingKeysWith: { one, _ in one }))
        for phone in phones {
            let part = Key(message: key.message, user: key.user, device: phone)
            decide(part, change, subject, sockets(part), at: now, &steps)
        }
    }

    /// Reports a verdict on an alert, or combines it with those on the user's other phones.
    private mutating func report(_ verdict: Verdict, _ steps: inout Steps) {
        let (key, device) = (verdict.key.whole, verdict.key.device)
        guard var parts = parts[key] else { return steps.verdicts.append(verdict) }
        func whole(_ state: State, _ reason: AlertReason) -> Verdict {
            Verdict(key: key, state: state, reason: reason, waited: parts.waited)
        }
        parts.waited = max(parts.waited, verdict.waited)
        switch verdict.state {
        case .held(let until):
            parts.open[device] = until
            steps.verdicts.append(whole(.held(until: parts.open.values.max() ?? until), verdict.reason))
        case .due:
            parts.open[device] = nil
            parts.due = parts.due ?? verdict.reason
        case .dropped:
            parts.open[device] = nil
            steps.spared.append(
                SparedPhones(message: key.message, user: key.user, session: device, reason: verdict.reason))
        }
        self.parts[key] = parts.open.isEmpty ? nil : parts
        guard parts.open.isEmpty else { return }
        steps.verdicts.append(parts.due.map { whole(.due, $0) } ?? whole(.dropped, verdict.reason))
    }

    private mutating func decision(
        _ key: Key, _ change: Int64, _ subject: Subject, _ sockets: UserSockets, at now: Int64, _ steps: inout Steps
    ) -> Verdict {
        if !sockets.places.isEmpty {
            guard subject.condition != .away else { return verdict(on: key, .dropped, .connected, at: now) }
            let loops = ask(key, change, subject, sockets, at: now, &steps)
            put(
                key,
                Wait(
                    change: change, subject: subject, began: now,
                    phase: .asked(loops: loops, until: now + proof, reason: .unproven)))
            return Verdict(key: key, state: .held(until: now + proof), reason: .unproven, waited: 0)
        }
        if let until = sockets.graceUntil, until > now {
            put(
                key,
                Wait(
                    change: change, subject: subject, began: now,
                    phase: .grace(until: until, lookAt: now + Self.interval)))
            return Verdict(key: key, state: .held(until: until), reason: .grace, waited: 0)
        }
        return verdict(on: key, .due, .away, at: now)
    }

    private func ask(
        _ key: Key, _ change: Int64, _ subject: Subject, _ sockets: UserSockets, at now: Int64, _ steps: inout Steps
    ) -> Set<Int> {
        var slots: [Int: [Slot]] = [:]
        for place in sockets.places { slots[place.loop, default: []].append(place.slot) }
        for (loop, slots) in slots {
            steps.questions[loop, default: []].append(
                ReceiptQuestion(
                    change: change, user: key.user, device: key.device, slots: slots, row: subject.row,
                    asksForLife: subject.asksForLife,
                    demandsShown: subject.condition == .unseen,
                    until: now + proof))
        }
        return Set(slots.keys)
    }

    /// Waits for another hub: the alert is in the queue, and this hub has nothing against it. A user who connects here in the meantime
    /// is asked.
    ///
    /// - Parameter phones: as for `decide`; nil if all are judged together.
    package mutating func waitElsewhere(
        _ key: Key, _ change: Int64, _ subject: Subject? = nil, phones: [Name?]? = nil, at now: Int64
    ) {
        let subject = subject ?? Subject(row: .unknown, condition: condition)
        let wait = Wait(
            change: change, subject: subject, began: now, phase: .elsewhere(lookAt: now + Self.interval))
        put(key, wait, phones, at: now)
    }

    /// Resumes the wait of an alert in the queue that this hub's last process held until then.
    package mutating func waitAgain(
        _ key: Key, _ change: Int64, phones: [Name?]? = nil, until: Int64, at now: Int64
    ) {
        let wait = Wait(
            change: change, subject: Subject(row: .unknown, condition: condition), began: now,
            phase: .grace(until: until, lookAt: now))
        put(key, wait, phones, at: now)
    }

    private mutating func put(_ key: Key, _ wait: Wait, _ phones: [Name?]?, at now: Int64) {
        guard waits[key] == nil, parts[key] == nil else { return }
        guard let phones else { return put(key, wait) }
        parts[key] = Parts(open: Dictionary(phones.map { ($0, now) }, uniquingKeysWith: { one, _ in one }))
        for phone in phones { put(Key(message: key.message, user: key.user, device: phone), wait) }
    }

    /// Forgets alerts that no longer wait in the queue, because another hub has decided on them.
    package mutating func keep(_ waiting: Set<Key>) {
        for key in waits.keys where !waiting.contains(key.whole) { remove(key) }
        parts = parts.filter { waiting.contains($0.key) }
    }

    /// Takes the answer of a loop's sockets, or their failure to answer.
    package mutating func take(
        _ answer: ReceiptAnswer, at now: Int64, sockets: (Key) -> UserSockets, _ steps: inout Steps
    ) {
        for key in keys[answer.change] ?? [] where key.user == answer.user && key.device == answer.device {
            guard let wait = waits[key] else { continue }
            switch answer.verdict {
            case .shown: end(key, .dropped, .shown, at: now, &steps)
            case .received where wait.subject.condition == .unreceived:
                end(key, .dropped, .received, at: now, &steps)
            case .received, .hidden: take(.hidden, from: answer.loop, wait, key, at: now, sockets, &steps)
            case .unheard: take(.unheard, from: answer.loop, wait, key, at: now, sockets, &steps)
            case .lost: take(.lost, from: answer.loop, wait, key, at: now, sockets, &steps)
            }
        }
    }

    private mutating func take(
        _ reason: AlertReason, from loop: Int, _ wait: Wait, _ key: Key, at now: Int64,
        _ sockets: (Key) -> UserSockets,
        _ steps: inout Steps
    ) {
        guard case .asked(var loops, let until, _) = wait.phase else { return }
        loops.remove(loop)
        guard loops.isEmpty else {
            waits[key]?.phase = .asked(loops: loops, until: until, reason: reason)
            return
        }
        guard reason == .lost else { return end(key, .due, reason, at: now, &steps) }
        // The socket was cut off since the question, or the user is already back.
        let sockets = sockets(key)
        if sockets.places.isEmpty, sockets.graceUntil.map({ $0 <= now }) ?? true {
            return end(key, .due, .lost, at: now, &steps)
        }
        decide(key, wait.change, wait.subject, sockets, at: now, &steps)
    }

    /// Does what is due.
    package mutating func advance(at now: Int64, sockets: (Key) -> UserSockets, _ steps: inout Steps) {
        for (key, wait) in waits {
            switch wait.phase {
            case .asked(_, let until, let reason) where until <= now:
                end(key, .due, reason, at: now, &steps)
            case .grace(let until, _) where until <= now:
                decide(key, wait.change, wait.subject, sockets(key), at: now, &steps)
            case .grace(let until, let lookAt) where lookAt <= now:
                let isBack = look(key, wait, sockets(key), at: now, &steps)
                waits[key]?.phase = .grace(until: isBack ? min(until, now + proof) : until, lookAt: now + Self.interval)
            case .elsewhere(let lookAt) where lookAt <= now:
                _ = look(key, wait, sockets(key), at: now, &steps)
                waits[key]?.phase = .elsewhere(lookAt: now + Self.interval)
            case .asked, .grace, .elsewhere: break
            }
        }
    }

    /// Asks the sockets of a user who was not here a moment ago. Only an answer that proves something counts: a returning user joins
    /// one conversation after the other.
    ///
    /// - Returns: whether the user is here.
    private mutating func look(
        _ key: Key, _ wait: Wait, _ sockets: UserSockets, at now: Int64, _ steps: inout Steps
    ) -> Bool {
        guard !sockets.places.isEmpty else { return false }
        if wait.subject.condition == .away {
            end(key, .dropped, .connected, at: now, &steps)
        } else {
            _ = ask(key, wait.change, wait.subject, sockets, at: now, &steps)
        }
        return true
    }

    // MARK: Waiting alerts

    private mutating func put(_ key: Key, _ wait: Wait) {
        waits[key] = wait
        keys[wait.change, default: []].insert(key)
    }

    private mutating func end(
        _ key: Key, _ state: State, _ reason: AlertReason, at now: Int64, _ steps: inout Steps
    ) {
        report(verdict(on: key, state, reason, at: now), &steps)
    }

    /// Returns the last verdict on an alert, which then no longer waits.
    private mutating func verdict(on key: Key, _ state: State, _ reason: AlertReason, at now: Int64) -> Verdict {
        let waited = waits[key].map { now - $0.began } ?? 0
        remove(key)
        return Verdict(key: key, state: state, reason: reason, waited: waited)
    }

    private mutating func remove(_ key: Key) {
        guard let wait = waits.removeValue(forKey: key) else { return }
        keys[wait.change]?.remove(key)
        if keys[wait.change]?.isEmpty == true { keys[wait.change] = nil }
    }
}

extension MessageIdentity {
    /// The identity of a message read from the queue: no broadcast is compared with it.
    package static var unknown: MessageIdentity { MessageIdentity(schema: "", table: "", key: []) }
}

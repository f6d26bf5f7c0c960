extension ConversationBehaviour {
    private static let typing = Needle("\"typing\":true")
    private static let typingState = Needle("typing_state")
    private static let presenceDiff = Needle("presence_diff")
    private static let leaves = Needle("\"leaves\":")

    // MARK: What is said

    var nextDue: UInt64 { script.nextDue }

    func act(at now: UInt64, _ fleet: Fleet<ConversationBehaviour>) throws {
        while let action = script.next(at: now) {
            switch action.kind {
            case .departure:
                guard fleet.sockets[action.subject].phase == .ready else { continue }
                left(action.subject)
                try fleet.leave(action.subject)
            case .comeback: fleet.open(action.subject)
            case .typingBegins: try say(action, .typing, 0, fleet) { frames.typing(action.subject, true, $0) }
            case .typingEnds: try say(action, .typing, 0, fleet) { frames.typing(action.subject, false, $0) }
            case .receipt:
                let row = rows.schedule.number(of: action.tick)
                try say(action, .broadcast, receipts[action.subject], fleet) {
                    frames.receipt(action.subject, row: row, $0)
                }
            }
        }
    }

    private func say(
        _ action: ChatAction, _ kind: Stamp.Kind, _ number: Int, _ fleet: Fleet<ConversationBehaviour>,
        _ frame: ([UInt8]) -> [UInt8]
    ) throws {
        let slot = action.subject / roster.perSocket
        // Whoever is away says nothing.
        guard fleet.sockets[slot].phase == .ready else { return }
        let stamp = Stamp(
            kind: kind, stream: stream(action.subject), number: number, due: action.due, sent: MonotonicClock.now)
        if kind == .broadcast { receipts[action.subject] += 1 }
        try fleet.send(frame(code.bytes(of: stamp)), on: slot)
        meter.sent += 1
    }

    // MARK: What is heard

    func received(
        _ frame: UnsafeRawBufferPointer, on slot: Int, at now: UInt64, _ fleet: Fleet<ConversationBehaviour>
    ) -> Bool {
        guard let at = code.needle.end(in: frame), let stamp = code.read(frame, at: at) else { return false }
        meter.took()
        switch stamp.kind {
        case .row: takeRow(stamp, slot, now)
        case .broadcast: takeReceipt(stamp, slot, now)
        case .typing:
            // The hub ends what nobody ended, with the same stamp, and tells newcomers who types.
            if Self.typing.occurs(in: frame), !Self.typingState.occurs(in: frame) {
                meter.record(.typing, from: stamp.due, to: now, due: stamp.due)
            }
        case .presence: takePresence(frame, at, now)
        }
        return true
    }

    private func takeRow(_ stamp: Stamp, _ slot: Int, _ now: UInt64) {
        guard let conversation = rows.schedule.conversation(ofStream: stamp.stream),
            let membership = windows.membership(of: slot, in: conversation)
        else {
            meter.count.wrong += 1
            return
        }
        guard windows.isActive(membership), meter.count.count(windows.takeRow(stamp.number, membership)) else { return }
        rows.arrived(rows.schedule.tick(stamp.number, in: conversation), at: now)
    }

    private func takeReceipt(_ stamp: Stamp, _ slot: Int, _ now: UInt64) {
        let sender = stamp.stream / plan.workers
        guard stamp.stream % plan.workers == worker, sender < roster.conversations.count,
            let membership = windows.membership(of: slot, in: roster.conversations[sender]), membership != sender
        else {
            meter.count.wrong += 1
            return
        }
        guard windows.isActive(membership),
            meter.count.count(windows.takeReceipt(stamp.number, from: sender, membership))
        else { return }
        meter.record(.broadcast, from: stamp.due, to: now, due: stamp.due)
        meter.record(.sent, from: stamp.sent, to: now, due: stamp.due)
    }

    /// Measures how soon members are shown, by the joins of a `presence_diff`; lists of who is there tell nothing of when.
    private func takePresence(_ frame: UnsafeRawBufferPointer, _ first: Int, _ now: UInt64) {
        guard Self.presenceDiff.occurs(in: frame) else { return }
        let end = Self.leaves.end(in: frame) ?? frame.count
        var next: Int? = first
        while let at = next, at < end {
            if let stamp = code.read(frame, at: at) {
                meter.record(.presence, from: stamp.due, to: now, due: stamp.due)
            }
            next = code.needle.end(in: frame, from: at)
        }
    }
}

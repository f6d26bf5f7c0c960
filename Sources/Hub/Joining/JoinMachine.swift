package import Wire

/// How far a member's join is, from the frame that asks for it to the end of the membership.
///
/// "Live means live": the answer to a join makes clients report that they are subscribed. So it is given when everything is
/// known that decides what the member hears, and not before. After that the same machine sees to it that row changes
/// wait when a new token makes them others.
///
/// A value that does nothing itself: it is told what happened, and says what follows. `Hub.handle` does that. The
/// tests are one table, in JoinMachineTests.
package struct JoinMachine: Sendable {
    /// What may have to be known first. It becomes known in any order.
    package struct Needs: OptionSet, Sendable, Hashable {
        package let rawValue: UInt8

        package init(rawValue: UInt8) { self.rawValue = rawValue }

        /// What the policies of a private channel let the member read. The messages that it wants to be replayed come
        /// with that answer.
        package static let authorization = Needs(rawValue: 1)
        /// Whether the change feed serves the row changes that it asked for.
        package static let subscription = Needs(rawValue: 2)
        /// Which of the client's sessions for row changes is its own, which other sockets may have to be asked for; and
        /// that the member's new session is written down.
        package static let session = Needs(rawValue: 4)
        /// The same of sessions with kept messages, which are not written down.
        package static let history = Needs(rawValue: 8)

        /// What a member with a new token may have to wait for once more.
        static let ofRowChanges: Needs = [.subscription, .session]
        static let all: Needs = [.authorization, .subscription, .session, .history]
    }

    package enum State: Sendable, Equatable {
        /// The join is not answered.
        case waits(Needs)
        /// Nor is it here: all else is known, and the feed was asked whether what the client missed can be told, which
        /// the answer has to say.
        case waitsForRecovery
        /// The join was answered. With needs, the member is in the channel and its token changed: its row changes go on
        /// when they are met.
        case joined(Needs)
        /// The member is no member any more, or never became one.
        case ended
    }

    package enum Event: Sendable, Equatable {
        /// The join was accepted as far as the hub itself can tell.
        case begins(Needs)
        /// What the member needs became known, and is well.
        case met(Needs)
        /// It cannot be known, or is a no.
        case failed(Needs, Refusal)
        /// The member's row changes are judged by another token from here on, and need this.
        case rowChangesRestarted(Needs)
        /// Whether what was missed can be told is known, or nothing was missed.
        case recoveryIsKnown
        /// The feed cannot say it, or cannot go on with what it told.
        case recoveryFailed(Refusal)
        /// The answer is not to wait any longer for what may as well follow it.
        case isLate
        /// More came while a join with a replay was waiting than the hub keeps.
        case replayOverflowed
        /// The member was taken out of its channel.
        case removed
    }

    package enum Action: Sendable, Equatable {
        /// Find out what the client missed; `recoveryIsKnown` follows, at once where it missed nothing.
        case findMissed
        /// Answer the join, and let the member in.
        case answer
        /// Let row changes reach a member that is in already, after what it missed of them.
        case resumeRowChanges
        /// Answer the join with a no.
        case refuse(Refusal)
        /// End the channel of a member that was let in.
        case expel(Refusal)
    }

    package private(set) var state = State.waits([])

    package init() {}

    /// The join was answered, and the member is still there.
    package var isJoined: Bool { if case .joined = state { true } else { false } }
    package var hasEnded: Bool { state == .ended }

    package func needs(_ need: Needs) -> Bool {
        switch state {
        case .waits(let needs), .joined(let needs): !needs.isDisjoint(with: need)
        case .waitsForRecovery, .ended: false
        }
    }

    /// Takes an event, and says what is to be done about it. Events that come too late to matter change nothing.
    package mutating func handle(_ event: Event) -> Action? {
        switch (state, event) {
        case (.waits, .begins(let needs)): return wait(for: needs)
        case (.waits(let needs), .met(let known)): return wait(for: needs.subtracting(known))
        case (.waits(let needs), .rowChangesRestarted(let new)):
            return wait(for: needs.subtracting(.ofRowChanges).union(new))
        case (.waits(let needs), .failed(let need, let refusal)):
            // A private channel's new token can be judged while the join waits for something else. The member has been
            // let read by then, so a no ends its channel as it would later.
            return end(needs.isDisjoint(with: need) ? .expel(refusal) : .refuse(refusal))

        case (.waits(let needs), .isLate) where needs.isSubset(of: .subscription):
            state = .joined(needs)
            return .answer

        case (.waitsForRecovery, .recoveryIsKnown), (.waitsForRecovery, .isLate):
            state = .joined([])
            return .answer
        case (.waitsForRecovery, .recoveryFailed(let refusal)): return end(.refuse(refusal))
        case (.waitsForRecovery, .replayOverflowed): return end(.refuse(.replayFailed))
        case (.waitsForRecovery, .failed(_, let refusal)): return end(.expel(refusal))
        case (.waitsForRecovery, .rowChangesRestarted(let needs)): return wait(for: needs)

        case (.joined(let needs), .met(let known)) where !needs.isDisjoint(with: known):
            return resume(after: needs.subtracting(known))
        case (.joined, .rowChangesRestarted(let needs)): return resume(after: needs)
        case (.joined, .failed(_, let refusal)), (.joined, .recoveryFailed(let refusal)):
            return end(.expel(refusal))

        case (_, .removed):
            state = .ended
            return nil
        case (.waits, _), (.waitsForRecovery, _), (.joined, _), (.ended, _): return nil
        }
    }

    private mutating func wait(for needs: Needs) -> Action? {
        state = needs.isEmpty ? .waitsForRecovery : .waits(needs)
        return needs.isEmpty ? .findMissed : nil
    }

    private mutating func resume(after needs: Needs) -> Action? {
        state = .joined(needs)
        return needs.isEmpty ? .resumeRowChanges : nil
    }

    private mutating func end(_ last: Action) -> Action {
        state = .ended
        return last
    }
}

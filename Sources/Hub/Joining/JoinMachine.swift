package import Wire

/// The state of a member's join, from the frame that asks for it to the end of the membership.
///
/// "Live means live": on the answer to a join, clients report that they are subscribed. So the join is answered when
/// everything that determines what the member hears is known, and not before. Afterwards the same machine makes row
/// changes wait when a new token alters them.
///
/// A value without effects: it is told events and returns actions, which `Hub.handleEvent` performs. The tests are one
/// table, in JoinMachineTests.
package struct JoinMachine: Sendable {
    /// The facts that may have to be known first. They become known in any order.
    package struct Needs: OptionSet, Sendable, Hashable {
        package let rawValue: UInt8

        package init(rawValue: UInt8) { self.rawValue = rawValue }

        /// The member's right to read, decided by a private channel's policies. That answer also brings the messages to
        /// replay.
        package static let authorization = Needs(rawValue: 1)
        /// Whether the change feed serves the requested row changes.
        package static let subscription = Needs(rawValue: 2)
        /// The client's own session among those for row changes, for which other sockets may have to be asked; and the
        /// writing of the member's new session.
        package static let session = Needs(rawValue: 4)
        /// The same for sessions with kept messages, which are not written down.
        package static let history = Needs(rawValue: 8)

        /// The needs that a member with a new token may have to wait for again.
        static let ofRowChanges: Needs = [.subscription, .session]
        static let all: Needs = [.authorization, .subscription, .session, .history]
    }

    package enum State: Sendable, Equatable {
        /// The join is not answered.
        case waits(Needs)
        /// The join is not answered: everything else is known, but the feed was asked whether the client's missed
        /// changes can be recovered, which the answer has to say.
        case waitsForRecovery
        /// The join was answered. With needs, the member is in the channel and its token changed: its row changes
        /// continue when the needs are met.
        case joined(Needs)
        /// The membership is over, or never began.
        case ended
    }

    package enum Event: Sendable, Equatable {
        /// The join was accepted as far as the hub itself can tell.
        case begins(Needs)
        /// Some needs are met.
        case met(Needs)
        /// Some needs cannot be met: the answer is unknown or a no.
        case failed(Needs, Refusal)
        /// The member's row changes are now judged by another token, and have these needs.
        case rowChangesRestarted(Needs)
        /// The feed has said whether missed changes can be recovered, or none were missed.
        case recoveryIsKnown
        /// The feed cannot recover the missed changes, or cannot continue.
        case recoveryFailed(Refusal)
        /// The answer must not wait any longer for anything that may follow it.
        case isLate
        /// More messages arrived while a join with a replay was waiting than the hub keeps.
        case replayOverflowed
        /// The member was removed from its channel.
        case removed
    }

    package enum Action: Sendable, Equatable {
        /// Find out what the client missed; `recoveryIsKnown` follows, at once if it missed nothing.
        case findMissed
        /// Answer the join and let the member in.
        case answer
        /// Let row changes reach a member that is already in, after those it missed.
        case resumeRowChanges
        /// Refuse the join.
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

    /// Handles an event and returns the action to take. Events that come too late have no effect.
    package mutating func handleEvent(_ event: Event) -> Action? {
        switch (state, event) {
        case (.waits, .begins(let needs)): return wait(for: needs)
        case (.waits(let needs), .met(let known)): return wait(for: needs.subtracting(known))
        case (.waits(let needs), .rowChangesRestarted(let new)):
            return wait(for: needs.subtracting(.ofRowChanges).union(new))
        case (.waits(let needs), .failed(let need, let refusal)):
            // A private channel's new token may be judged while the join waits for something else. The member's right
            // to read is established by then, so a no ends its channel as it would later.
            return endJoin(needs.isDisjoint(with: need) ? .expel(refusal) : .refuse(refusal))

        case (.waits(let needs), .isLate) where needs.isSubset(of: .subscription):
            state = .joined(needs)
            return .answer

        case (.waitsForRecovery, .recoveryIsKnown), (.waitsForRecovery, .isLate):
            state = .joined([])
            return .answer
        case (.waitsForRecovery, .recoveryFailed(let refusal)): return endJoin(.refuse(refusal))
        case (.waitsForRecovery, .replayOverflowed): return endJoin(.refuse(.replayFailed))
        case (.waitsForRecovery, .failed(_, let refusal)): return endJoin(.expel(refusal))
        case (.waitsForRecovery, .rowChangesRestarted(let needs)): return wait(for: needs)

        case (.joined(let needs), .met(let known)) where !needs.isDisjoint(with: known):
            return resumeChanges(after: needs.subtracting(known))
        case (.joined, .rowChangesRestarted(let needs)): return resumeChanges(after: needs)
        case (.joined, .failed(_, let refusal)), (.joined, .recoveryFailed(let refusal)):
            return endJoin(.expel(refusal))

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

    private mutating func resumeChanges(after needs: Needs) -> Action? {
        state = .joined(needs)
        return needs.isEmpty ? .resumeRowChanges : nil
    }

    private mutating func endJoin(_ last: Action) -> Action {
        state = .ended
        return last
    }
}

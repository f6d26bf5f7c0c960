import Hub
import Testing
import Wire

/// What becomes of a join in each state, with each event: the machine as one table.
@Suite struct JoinMachineTests {
    typealias Needs = JoinMachine.Needs
    typealias State = JoinMachine.State
    typealias Event = JoinMachine.Event
    typealias Action = JoinMachine.Action

    struct Row: Sendable, CustomTestStringConvertible {
        let state: State
        let event: Event
        let next: State
        let action: Action?

        init(_ state: State, _ event: Event, _ next: State, _ action: Action? = nil) {
            self.state = state
            self.event = event
            self.next = next
            self.action = action
        }

        var testDescription: String { "\(state), \(event)" }
    }

    private static let no = Refusal.databaseUnavailable
    private static let feed: Needs = [.subscription, .session]
    private static let all: Needs = [.authorization, .subscription, .session, .history]

    static let rows: [Row] = [
        // A join that needs nothing is answered as soon as it is known what was missed.
        Row(.waits([]), .begins([]), .waitsForRecovery, .findMissed),
        Row(.waits([]), .begins(all), .waits(all)),

        // What it needs comes in any order, and the last of it ends the wait.
        Row(.waits(all), .met(.authorization), .waits([.subscription, .session, .history])),
        Row(.waits(all), .met(.subscription), .waits([.authorization, .session, .history])),
        Row(.waits(all), .met(.session), .waits([.authorization, .subscription, .history])),
        Row(.waits(all), .met(.history), .waits([.authorization, .subscription, .session])),
        Row(.waits(.authorization), .met(.authorization), .waitsForRecovery, .findMissed),
        Row(.waits(.subscription), .met(.subscription), .waitsForRecovery, .findMissed),
        Row(.waits(.session), .met(.session), .waitsForRecovery, .findMissed),
        Row(.waits(.history), .met(.history), .waitsForRecovery, .findMissed),
        Row(.waits(.authorization), .met(.history), .waits(.authorization)),

        // What cannot be had refuses the join; a token that came meanwhile and is no good ends the channel.
        Row(.waits(all), .failed(.authorization, no), .ended, .refuse(no)),
        Row(.waits(all), .failed(.subscription, no), .ended, .refuse(no)),
        Row(.waits(all), .failed(.session, no), .ended, .refuse(no)),
        Row(.waits(feed), .failed(.authorization, no), .ended, .expel(no)),

        // An answer that is late comes before what was missed, but not before the rights are known, what is kept of broadcasts,
        // and the session.
        Row(.waits(.subscription), .isLate, .joined(.subscription), .answer),
        Row(.waits(feed), .isLate, .waits(feed)),
        Row(.waits(.session), .isLate, .waits(.session)),
        Row(.waits(all), .isLate, .waits(all)),
        Row(.waits(.history), .isLate, .waits(.history)),
        Row(.waitsForRecovery, .isLate, .joined([]), .answer),
        Row(.joined(feed), .isLate, .joined(feed)),
        Row(.ended, .isLate, .ended),

        // A new token while the join waits: its row changes are to be found out once more, and nothing else.
        Row(.waits([.authorization, .history]), .rowChangesRestarted(feed), .waits(all)),
        Row(.waits(all), .rowChangesRestarted([]), .waits([.authorization, .history])),
        Row(.waits(feed), .rowChangesRestarted(.subscription), .waits(.subscription)),
        Row(.waits(feed), .rowChangesRestarted([]), .waitsForRecovery, .findMissed),

        // Answers to questions that were given up change nothing.
        Row(.waits(all), .recoveryIsKnown, .waits(all)),
        Row(.waits(all), .recoveryFailed(no), .waits(all)),
        Row(.waits(all), .replayOverflowed, .waits(all)),
        Row(.waits(all), .removed, .ended),

        // The answer waits for the feed's word on what was missed.
        Row(.waitsForRecovery, .recoveryIsKnown, .joined([]), .answer),
        Row(.waitsForRecovery, .recoveryFailed(no), .ended, .refuse(no)),
        Row(.waitsForRecovery, .replayOverflowed, .ended, .refuse(.replayFailed)),
        Row(.waitsForRecovery, .failed(.authorization, no), .ended, .expel(no)),
        Row(.waitsForRecovery, .rowChangesRestarted([]), .waitsForRecovery, .findMissed),
        Row(.waitsForRecovery, .rowChangesRestarted(feed), .waits(feed)),
        Row(.waitsForRecovery, .met(.history), .waitsForRecovery),
        Row(.waitsForRecovery, .begins(all), .waitsForRecovery),
        Row(.waitsForRecovery, .removed, .ended),

        // A member has its answer. With a new token its row changes wait as those of a join do, and nothing else does.
        Row(.joined([]), .rowChangesRestarted([]), .joined([]), .resumeRowChanges),
        Row(.joined([]), .rowChangesRestarted(feed), .joined(feed)),
        Row(.joined(feed), .rowChangesRestarted(.session), .joined(.session)),
        Row(.joined(feed), .met(.subscription), .joined(.session)),
        Row(.joined(feed), .met(.session), .joined(.subscription)),
        Row(.joined(.subscription), .met(.subscription), .joined([]), .resumeRowChanges),
        Row(.joined(.session), .met(.session), .joined([]), .resumeRowChanges),
        Row(.joined(.session), .met(.history), .joined(.session)),
        Row(.joined([]), .met(.session), .joined([])),

        // It cannot be refused any more, so its channel ends.
        Row(.joined([]), .failed(.authorization, no), .ended, .expel(no)),
        Row(.joined(feed), .failed(.subscription, no), .ended, .expel(no)),
        Row(.joined(feed), .failed(.session, no), .ended, .expel(no)),
        Row(.joined([]), .recoveryFailed(no), .ended, .expel(no)),
        Row(.joined([]), .recoveryIsKnown, .joined([])),
        Row(.joined([]), .replayOverflowed, .joined([])),
        Row(.joined([]), .begins(all), .joined([])),
        Row(.joined(feed), .removed, .ended),

        // Who is gone stays gone.
        Row(.ended, .begins([]), .ended),
        Row(.ended, .met(all), .ended),
        Row(.ended, .failed(.authorization, no), .ended),
        Row(.ended, .rowChangesRestarted([]), .ended),
        Row(.ended, .recoveryIsKnown, .ended),
        Row(.ended, .recoveryFailed(no), .ended),
        Row(.ended, .replayOverflowed, .ended),
        Row(.ended, .removed, .ended),
    ]

    @Test(arguments: rows) func table(_ row: Row) {
        var machine = machine(in: row.state)
        let action = machine.handleEvent(row.event)
        #expect(machine.state == row.next)
        #expect(action == row.action)
    }

    /// The table leaves out no kind of event in any kind of state.
    @Test func theTableIsWhole() {
        func name(_ value: some Any) -> Substring { "\(value)".prefix { $0 != "(" } }
        let rows = Set(Self.rows.map { "\(name($0.state)) \(name($0.event))" })
        let states = Set(Self.rows.map { name($0.state) })
        let events = Set(Self.rows.map { name($0.event) })
        #expect(states.count == 4 && events.count == 9)
        for state in states { for event in events { #expect(rows.contains("\(state) \(event)")) } }
    }

    /// A machine that was brought there by events.
    private func machine(in state: State) -> JoinMachine {
        var machine = JoinMachine()
        switch state {
        case .waits(let needs): if !needs.isEmpty { _ = machine.handleEvent(.begins(needs)) }
        case .waitsForRecovery: _ = machine.handleEvent(.begins([]))
        case .joined(let needs):
            _ = machine.handleEvent(.begins([]))
            _ = machine.handleEvent(.recoveryIsKnown)
            if !needs.isEmpty { _ = machine.handleEvent(.rowChangesRestarted(needs)) }
        case .ended: _ = machine.handleEvent(.removed)
        }
        #expect(machine.state == state)
        return machine
    }

    @Test func whoIsJoined() {
        #expect(!machine(in: .waits(.history)).isJoined && !machine(in: .waitsForRecovery).isJoined)
        #expect(machine(in: .joined([])).isJoined && machine(in: .joined(.session)).isJoined)
        #expect(machine(in: .ended).hasEnded && !machine(in: .ended).isJoined)
        #expect(machine(in: .joined(.session)).needs([.session, .history]))
        #expect(!machine(in: .joined(.session)).needs(.history) && !machine(in: .waitsForRecovery).needs(Self.all))
    }
}

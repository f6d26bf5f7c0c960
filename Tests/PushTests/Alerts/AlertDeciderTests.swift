import Hub
import Push
import Testing
import Wire

/// Whether a user is alerted, by what the user's sockets prove.
@Suite struct AlertDeciderTests {
    private static let key = AlertDecider.Key(message: "messages 7", user: "ada")
    private static let none = UserSockets(places: [], graceUntil: nil)

    private static func sockets(_ loops: Int...) -> UserSockets {
        UserSockets(places: loops.map { SocketPlace(loop: $0, slot: 1) }, graceUntil: nil)
    }

    private static func grace(until: Int64) -> UserSockets { UserSockets(places: [], graceUntil: until) }

    private static func answer(_ verdict: ReceiptAnswer.Verdict, from loop: Int = 0) -> ReceiptAnswer {
        ReceiptAnswer(change: 7, user: "ada", loop: loop, verdict: verdict)
    }

    private static func subject(_ decider: AlertDecider) -> AlertDecider.Subject {
        AlertDecider.Subject(row: .unknown, condition: decider.condition)
    }

    private func decider(_ condition: AlertCondition = .unseen) -> AlertDecider { AlertDecider(condition, proof: 5000) }

    /// What `body` decides: one word for each verdict.
    private func decided(_ body: (inout AlertDecider.Steps) -> Void) -> [String] {
        var steps = AlertDecider.Steps()
        body(&steps)
        return steps.verdicts.map { verdict in
            switch verdict.state {
            case .due: "due: \(verdict.reason)"
            case .held(let until): "held until \(until): \(verdict.reason)"
            case .dropped: "dropped: \(verdict.reason)"
            }
        }
    }

    private func begin(_ decider: inout AlertDecider, _ sockets: UserSockets, at now: Int64 = 0) -> [String] {
        let subject = Self.subject(decider)
        return decided { decider.decide(Self.key, 7, subject, sockets, at: now, &$0) }
    }

    private func take(
        _ decider: inout AlertDecider, _ answer: ReceiptAnswer, at now: Int64 = 100, _ sockets: UserSockets = none
    ) -> [String] {
        decided { decider.take(answer, at: now, sockets: { _ in sockets }, &$0) }
    }

    private func advance(_ decider: inout AlertDecider, to now: Int64, _ sockets: UserSockets = none) -> [String] {
        decided { decider.advance(at: now, sockets: { _ in sockets }, &$0) }
    }

    @Test("A user without a socket is alerted at once")
    func away() {
        var decider = decider()
        let verdicts = begin(&decider, Self.none)
        #expect(verdicts == ["due: away"])
        #expect(decider.isEmpty)
    }

    @Test("An open socket is asked, and proves the message or does not within its time")
    func asked() {
        var decider = decider()
        var steps = AlertDecider.Steps()
        decider.decide(Self.key, 7, Self.subject(decider), Self.sockets(0, 1), at: 0, &steps)
        #expect(Set(steps.questions.keys) == [0, 1])
        #expect(steps.questions[0]?.first?.demandsShown == true)
        #expect(decider.changes == [7] && decider.nextDue == 5000)
        let early = advance(&decider, to: 4999)
        #expect(early.isEmpty)
        let late = advance(&decider, to: 5000)
        #expect(late == ["due: unproven"])
    }

    @Test(
        "What one socket shows ends it; that others do not hear it, or are hidden, does not",
        arguments: [
            ReceiptAnswer.Verdict.unheard, .hidden, .received,
        ])
    func oneOfTwoLoopsShowsIt(other: ReceiptAnswer.Verdict) {
        var decider = decider()
        _ = begin(&decider, Self.sockets(0, 1))
        let first = take(&decider, Self.answer(other, from: 1))
        #expect(first.isEmpty)
        let second = take(&decider, Self.answer(.shown))
        #expect(second == ["dropped: shown"])
    }

    @Test(
        "When no socket hears it, or none is on the screen, the alert is due at once",
        arguments: [
            (ReceiptAnswer.Verdict.unheard, "due: unheard"), (.hidden, "due: hidden"), (.received, "due: hidden"),
        ])
    func nobodySeesIt(verdict: ReceiptAnswer.Verdict, expected: String) {
        var decider = decider()
        _ = begin(&decider, Self.sockets(0))
        let verdicts = take(&decider, Self.answer(verdict))
        #expect(verdicts == [expected])
    }

    @Test("Where a proof in any state is enough, one of an app in the background is")
    func unreceived() {
        var decider = decider(.unreceived)
        var steps = AlertDecider.Steps()
        decider.decide(Self.key, 7, Self.subject(decider), Self.sockets(0), at: 0, &steps)
        #expect(steps.questions[0]?.first?.demandsShown == false)
        let verdicts = take(&decider, Self.answer(.received))
        #expect(verdicts == ["dropped: received"])
    }

    @Test("Where open sockets are enough, nobody is asked")
    func awayRule() {
        var decider = decider(.away)
        let live = begin(&decider, Self.sockets(0))
        #expect(live == ["dropped: connected"])
        let gone = begin(&decider, Self.grace(until: 2000))
        #expect(gone == ["held until 2000: grace"])
        let back = advance(&decider, to: 1000, Self.sockets(0))
        #expect(back == ["dropped: connected"])
    }

    @Test("Who was cut off has the window to come back, and is alerted when it ends")
    func grace() {
        var decider = decider()
        let verdicts = begin(&decider, Self.grace(until: 2000))
        #expect(verdicts == ["held until 2000: grace"])
        let early = advance(&decider, to: 1999)
        #expect(early.isEmpty)
        let late = advance(&decider, to: 2000)
        #expect(late == ["due: away"])
    }

    @Test(
        "Who comes back in the window has to prove the message, and until then an answer that proves nothing decides nothing"
    )
    func backInTheWindow() {
        var decider = decider()
        _ = begin(&decider, Self.grace(until: 60_000))
        let back = advance(&decider, to: 10_000, Self.sockets(0))
        #expect(back.isEmpty)
        let unheard = take(&decider, Self.answer(.unheard), at: 10_001)
        #expect(unheard.isEmpty, "it joins one conversation after the other")
        let shown = take(&decider, Self.answer(.shown), at: 11_000)
        #expect(shown == ["dropped: shown"])
    }

    @Test("Who comes back and does not open the conversation is alerted within the time of a proof")
    func backElsewhere() {
        var decider = decider()
        _ = begin(&decider, Self.grace(until: 60_000))
        _ = advance(&decider, to: 10_000, Self.sockets(0))
        let asked = advance(&decider, to: 15_000, Self.sockets(0))
        #expect(asked == ["held until 20000: unproven"])
        let verdicts = take(&decider, Self.answer(.unheard), at: 15_001)
        #expect(verdicts == ["due: unheard"])
    }

    @Test("A socket that ends before it has proven the message leaves a window, or a socket that came in its place")
    func lost() {
        var decider = decider()
        _ = begin(&decider, Self.sockets(0))
        let inWindow = take(&decider, Self.answer(.lost), at: 1000, Self.grace(until: 3000))
        #expect(inWindow == ["held until 3000: grace"])
        _ = begin(&decider, Self.sockets(0))
        let switched = take(&decider, Self.answer(.lost), at: 1000, Self.sockets(1))
        #expect(switched == ["held until 6000: unproven"])
        let gone = take(&decider, Self.answer(.lost, from: 1), at: 1500, Self.none)
        #expect(gone == ["due: lost"])
    }

    @Test(
        "An alert that waits for another hub is dropped by whoever comes here and proves the message, and by nothing else"
    )
    func elsewhere() {
        var decider = decider()
        decider.waitElsewhere(Self.key, 7, at: 0)
        let looked = advance(&decider, to: 1000, Self.sockets(0))
        #expect(looked.isEmpty)
        let unheard = take(&decider, Self.answer(.unheard))
        #expect(unheard.isEmpty)
        let shown = take(&decider, Self.answer(.shown))
        #expect(shown == ["dropped: shown"])
    }

    @Test("Alerts that another hub has decided on are forgotten")
    func keep() {
        var decider = decider()
        decider.waitElsewhere(Self.key, 7, at: 0)
        decider.waitElsewhere(AlertDecider.Key(message: "messages 8", user: "ada"), 8, at: 0)
        decider.keep([Self.key])
        #expect(decider.changes == [7])
    }
}

import Hub
import Push
import Testing
import Wire

/// `alerts.devices: each`: phones of one user that are judged by themselves.
@Suite struct AlertDevicesTests {
    private static let key = AlertDecider.Key(message: "messages 7", user: "ada")
    private static let none = UserSockets(places: [], graceUntil: nil)
    private static let open = UserSockets(places: [SocketPlace(loop: 0, slot: 1)], graceUntil: nil)

    private var decider = AlertDecider(.unseen, proof: 5000)

    /// What was decided: one word for each phone that is spared, and for each verdict.
    private func words(_ steps: AlertDecider.Steps) -> [String] {
        steps.spared.map { "spared: \($0.session ?? "none") \($0.reason)" }
            + steps.verdicts.map { verdict in
                switch verdict.state {
                case .due: "due: \(verdict.reason)"
                case .held(let until): "held until \(until)"
                case .dropped: "dropped: \(verdict.reason)"
                }
            }
    }

    private mutating func begin(_ phones: [Name?], open: Set<Name?>) -> AlertDecider.Steps {
        var steps = AlertDecider.Steps()
        decider.decide(
            Self.key, 7, AlertDecider.Subject(row: .unknown, condition: .unseen), phones: phones,
            sockets: { open.contains($0.device) ? Self.open : Self.none }, at: 0, &steps)
        return steps
    }

    private mutating func answer(
        _ verdict: ReceiptAnswer.Verdict, from device: Name?, at now: Int64 = 100
    ) -> [String] {
        var steps = AlertDecider.Steps()
        decider.take(
            ReceiptAnswer(change: 7, user: "ada", device: device, loop: 0, verdict: verdict), at: now,
            sockets: { _ in Self.none }, &steps)
        return words(steps)
    }

    @Test("What the tablet shows is pushed to the phone, and not to the tablet")
    mutating func oneShowsIt() {
        let began = begin(["tablet", "phone"], open: ["tablet"])
        #expect(words(began) == ["held until 5000"], "its push waits for what the tablet proves")
        #expect(began.questions[0]?.map(\.device) == ["tablet"])
        let shown = answer(.shown, from: "tablet")
        #expect(shown == ["spared: tablet shown", "due: away"])
        #expect(decider.isEmpty)
    }

    @Test("Where all show it nobody is alerted, and an answer of one says nothing of the other")
    mutating func allShowIt() {
        _ = begin(["tablet", "phone"], open: ["tablet", "phone"])
        let first = answer(.shown, from: "phone")
        #expect(first == ["spared: phone shown"])
        let again = answer(.shown, from: "phone")
        #expect(again.isEmpty)
        let second = answer(.shown, from: "tablet")
        #expect(second == ["spared: tablet shown", "dropped: shown"])
    }

    @Test("The one that does not prove it is alerted when its time is over, as long as the other takes")
    mutating func oneIsSilent() {
        _ = begin(["tablet", "phone"], open: ["tablet", "phone"])
        let hidden = answer(.hidden, from: "tablet")
        #expect(hidden.isEmpty)
        var steps = AlertDecider.Steps()
        decider.advance(at: 5000, sockets: { _ in Self.none }, &steps)
        #expect(words(steps) == ["due: hidden"])
    }

    @Test("Phones that are registered without a session are judged by all of the user's sockets")
    mutating func withoutSession() {
        let began = begin([nil, "phone"], open: [nil])
        #expect(began.questions[0]?.map(\.device) == [nil])
        let shown = answer(.shown, from: nil)
        #expect(shown == ["spared: none shown", "due: away"])
    }

    @Test("Nobody is there: the alert is due at once, for all of them")
    mutating func away() {
        let began = begin(["tablet", "phone"], open: [])
        #expect(words(began) == ["due: away"])
        #expect(decider.isEmpty)
    }

    @Test("While the alert waits for another hub, a phone that comes here and proves it is spared, and the alert waits")
    mutating func elsewhere() {
        decider.waitElsewhere(Self.key, 7, phones: ["tablet", "phone"], at: 0)
        decider.waitElsewhere(Self.key, 7, phones: ["tablet", "phone"], at: 10)
        var steps = AlertDecider.Steps()
        decider.advance(at: 1000, sockets: { $0.device == "phone" ? Self.open : Self.none }, &steps)
        #expect(words(steps).isEmpty && steps.questions[0]?.map(\.device) == ["phone"])
        let shown = answer(.shown, from: "phone", at: 1100)
        #expect(shown == ["spared: phone shown"])
        #expect(decider.changes == [7])
        decider.keep([])
        #expect(decider.isEmpty)
    }
}

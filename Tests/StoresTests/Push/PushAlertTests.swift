import ChangeFeed
import Foundation
import Hub
import Stores
import Synchronization
import Testing
import Wire

@testable import PostgresFixtures

extension StoreTests {
    /// The queue of alerts, as one hub sees it.
    @Suite struct PushAlertTests {
        let stage: PushStage
        let store: PushStore

        init() throws {
            stage = try PushStage.bare()
            store = try stage.hub()
            _ = try store.register(.sample(1), .alert, by: .sample("ann", session: "phone"))
            _ = try store.register(.sample(2), .alert, by: .sample("ann", session: "tablet"))
            _ = try store.register(.sample(3), .alert, by: .sample("bob"))
            _ = try store.register(.sample(4), .start(attributesType: "Chat"), by: .sample("cat"))
        }

        private func decide(_ message: Name, _ user: Name, _ state: AlertDraft.State, _ reason: AlertReason = .away)
            throws -> Int
        {
            try store.decide([AlertVerdict(message: message, user: user, state: state, reason: reason)])
        }

        @Test func isTakenOnceInOrder() throws {
            let drafts = ["m9", "m10", "m1"].flatMap { [AlertDraft.sample($0, "bob"), .sample($0, "ann")] }
            #expect(try store.enqueue(drafts).count == 6)
            #expect(try store.enqueue(drafts).isEmpty)
            let first = try store.takeDue(limit: 4)
            #expect(first.count == 4)
            #expect(first.alerts.map(\.message) == ["m9", "m9", "m10", "m10"])
            #expect(first.alerts.map(\.user) == ["bob", "ann", "bob", "ann"])
            #expect(Set(first.alerts[1].devices.map(\.destination)) == [.sample(1), .sample(2)])
            #expect(first.alerts[0].variables == Array(#"{"body":"hello"}"#.utf8))
            #expect(first.alerts[0].expiresAt == drafts[0].expiresAt && first.alerts[0].conversation == "c")
            #expect(try store.takeDue(limit: 100).alerts.count == 2)
            #expect(try store.takeDue(limit: 100).count == 0)
            #expect(try store.enqueue(drafts).isEmpty, "what was alerted is not alerted again")
        }

        /// While a service is away, whoever has no device of it is not kept.
        @Test func aKindThatIsFullKeepsNobodyElse() throws {
            let android = PushDestination(token: try #require(PushToken("cX:0123456789abcdef", of: .fcm)), bundle: "")
            _ = try store.register(android, .alert, by: .sample("ann", session: "watch"))
            _ = try store.enqueue([.sample("a", "ann", place: 1), .sample("b", "bob", place: 2)])
            #expect(try store.takeDue(limit: 10, full: [.fcm]).alerts.map(\.message) == ["b"])
            #expect(try store.takeDue(limit: 10, full: [.apns, .fcm]).count == 0)
            let taken = try store.takeDue(limit: 10).alerts
            #expect(taken.first?.devices.map(\.destination).contains(android) == true)
            #expect(taken.first?.devices.count == 3)
        }

        /// What was held falls due at one moment, and what waits for another hub after what is due at once.
        @Test func goInTheOrderOfTheMessages() throws {
            let soon = unixTime(in: 60)
            _ = try store.enqueue([
                .sample("z", "ann", .held(until: soon), place: 1), .sample("y", "ann", .held(until: soon), place: 2),
                .sample("x", "ann", .held(until: soon), place: 3),
            ])
            _ = try store.enqueue([.sample("a", "ann", place: 4), .sample("b", "bob", place: 5)])
            #expect(try store.takeDue(limit: 10, except: []).alerts.map(\.message) == ["b"], "ann's wait for the first")
            for message in ["z", "y", "x"] as [Name] { _ = try decide(message, "ann", .due) }
            for message in ["z", "y", "x", "a"] as [Name] {
                #expect(try store.takeDue(limit: 10, except: []).alerts.map(\.message) == [message])
            }
            try stage.online("ann", at: "b")
            try stage.hub("b").heartbeat()
            #expect(
                try store.enqueue([.sample("e", "ann", place: 6), .sample("f", "ann", place: 7)]).allSatisfy(
                    \.isElsewhere))
            #expect(try store.takeDue(limit: 10, except: []).count == 0)
            #expect(try store.takeDue(limit: 10).count == 0)
        }

        @Test func whatCannotBeSentIsCounted() throws {
            _ = try store.enqueue([
                .sample("m", "ann", lasting: -1), .sample("m", "cat"), .sample("m", "nobody"), .sample("m", "bob"),
            ])
            let taken = try store.takeDue(limit: 10)
            #expect(taken.alerts.map(\.user) == ["bob"])
            #expect(taken.expired == 1 && taken.withoutDevice == 2 && taken.count == 4)
            #expect(try store.takeDue(limit: 10).count == 0)
        }

        @Test("What this hub holds is sent or dropped when it says so, and not before")
        func heldUntilItIsDecided() throws {
            let soon = unixTime(in: -60)
            _ = try store.enqueue([
                .sample("m", "ann", .held(until: soon)), .sample("m", "bob", .held(until: unixTime(in: 90))),
                .sample("m", "cat", .dropped),
            ])
            #expect(
                try store.waitingAlerts().map { "\($0.user) \($0.heldUntil == soon)" } == ["ann true", "bob false"])
            #expect(try store.nextDue() == nil)
            #expect(try store.takeDue(limit: 10).count == 0)
            #expect(try decide("m", "bob", .dropped, .shown) == 1)
            #expect(try decide("m", "nobody", .dropped) == 0)
            #expect(try decide("m", "ann", .held(until: unixTime(in: 5)), .unproven) == 0)
            #expect(try store.takeDue(limit: 10).count == 0)
            #expect(try decide("m", "ann", .due, .unproven) == 0)
            #expect(try store.nextDue() != nil)
            #expect(try store.takeDue(limit: 10).alerts.map(\.user) == ["ann"])
            #expect(try store.nextDue() == nil)
            #expect(try decide("m", "ann", .dropped) == 0, "it is taken")
            #expect(try stage.alerts() == ["m ann taken", "m bob dropped", "m cat dropped"])
            #expect(
                try stage.lines("select reason from roost.alert order by user_id") == ["unproven", "shown", "away"])
        }

        @Test("Phones that have the message are sent nothing, and the others of their user are")
        func sparedPhones() throws {
            _ = try store.register(.sample(5), .alert, by: .sample("ann"))
            let sessions = try store.sessionsOfPhones(of: ["ann", "bob", "cat", "nobody"])
            #expect(sessions["ann"].map { Set($0) } == ["phone", "tablet", nil])
            #expect(sessions["bob"] == [nil] && sessions.count == 2)
            func spare(_ message: Name, _ session: Name?) throws {
                try store.spare([SparedPhones(message: message, user: "ann", session: session, reason: .shown)])
            }
            try spare("m", "tablet")
            try spare("m", "tablet")
            for session in ["phone", "tablet", nil] as [Name?] { try spare("n", session) }
            _ = try store.enqueue([.sample("m", "ann"), .sample("n", "ann")])
            let taken = try store.takeDue(limit: 10)
            #expect(taken.alerts.map(\.message) == ["m"] && taken.withoutDevice == 1)
            #expect(Set(taken.alerts[0].devices.map(\.destination)) == [.sample(1), .sample(5)])
            #expect(try store.unsettledAlerts().count == 2)
            #expect(
                try stage.lines("select outcome from roost.alert_device where message = 'n'")
                    == ["shown", "shown", "shown"])
        }

        /// Killed between taking and settling.
        @Test func takenIsNeverTakenAgain() throws {
            _ = try store.enqueue([.sample("m", "ann"), .sample("n", "bob"), .sample("n", "ann", .held(until: 0))])
            let taken = try stage.hub("killed").takeDue(limit: 10)
            #expect(taken.alerts.count == 2, "another hub's held one is not taken")
            try stage.hub("killed").settle([
                AlertSettlement(message: "m", destination: .sample(1), outcome: "delivered")
            ])
            let again = try stage.hub("killed")
            #expect(try again.resumeAlerts(heldUntil: 0) == 2)
            #expect(try again.resumeAlerts(heldUntil: 0) == 0)
            #expect(try again.takeDue(limit: 10).count == 0)
            #expect(
                try stage.lines("select message || ' ' || outcome from roost.alert_device order by token")
                    == ["m delivered", "m unknown", "n unknown"])
        }

        /// One of two phones was sent it, the other's push never left.
        @Test func whatNeverLeftIsGivenBack() throws {
            _ = try store.enqueue([.sample("m", "ann"), .sample("n", "ann")])
            #expect(try store.takeDue(limit: 10).alerts.count == 2)
            func settlement(_ message: String, _ phone: Int) -> AlertSettlement {
                AlertSettlement(message: Name(message), destination: .sample(phone), outcome: "delivered")
            }
            try store.settle([settlement("m", 1)])
            try stage.hub("b").giveBack([settlement("m", 2)])
            #expect(try store.takeDue(limit: 10).count == 0, "nobody gives back what another hub has taken")
            try store.giveBack([settlement("m", 1), settlement("m", 2), settlement("unknown", 2)])
            let again = try store.takeDue(limit: 10).alerts
            #expect(again.map(\.message) == ["m"])
            #expect(again.first?.devices.map(\.destination) == [.sample(2)], "what left does not leave again")
        }

        @Test func afterARestartUsersHaveTimeToComeBack() throws {
            _ = try store.enqueue([.sample("m", "ann", .held(until: unixTime(in: -1)))])
            #expect(try stage.hub().resumeAlerts(heldUntil: unixTime(in: 30)) == 0)
            #expect(try store.takeDue(limit: 10).count == 0)
            #expect(try stage.hub().waitingAlerts().map { $0.heldUntil != nil } == [true])
            #expect(try stage.hub("b").waitingAlerts().map { $0.heldUntil != nil } == [false], "it is another hub's")
            let before = try stage.lines("select due_at from roost.alert")
            #expect(try stage.hub().resumeAlerts(heldUntil: unixTime(in: -5)) == 0)
            #expect(try stage.lines("select due_at from roost.alert") == before, "it is only ever put off")
            _ = try decide("m", "ann", .dropped, .shown)
            #expect(try stage.alerts() == ["m ann dropped"])
            #expect(try store.waitingAlerts().isEmpty)
        }

        /// The phone that showed a message to one user does not show it to the next.
        @Test func phoneThatChangesHandsGetsAMessageOnce() throws {
            _ = try store.enqueue([.sample("m", "ann")])
            #expect(try store.takeDue(limit: 10).alerts.count == 1)
            _ = try store.register(.sample(1), .alert, by: .sample("bob", session: "phone"))
            _ = try store.enqueue([.sample("m", "bob")])
            let taken = try store.takeDue(limit: 10)
            #expect(taken.alerts.first?.devices.map(\.destination) == [.sample(3)])
        }

        @Test func oddDraftsAreLeftOut() throws {
            let long = String(repeating: "x", count: 5000)
            _ = try store.enqueue([
                .sample("m\u{0}", "ann"), .sample(long, "ann"), .sample("m", "ann"), .sample("m", "ann", .dropped),
                .sample("\"{,\\", "bob"),
            ])
            #expect(try store.takeDue(limit: 10).alerts.map(\.message) == ["m", "\"{,\\"])
            #expect(stage.notes.all.count == 1)
        }

        @Test func oldOnesAreForgotten() throws {
            _ = try store.enqueue((0..<5).map { .sample("m\($0)", "ann") })
            _ = try store.takeDue(limit: 3)
            #expect(try store.prune(olderThan: .seconds(60)) == 0)
            try stage.database.run("update roost.alert set created_at = created_at - interval '1 hour'")
            #expect(try store.prune(olderThan: .seconds(60), batch: 4) == 4)
            #expect(try store.prune(olderThan: .seconds(60), batch: 4) == 1)
            #expect(try stage.lines("select count(*) from roost.alert_device") == ["0"])
        }

        /// Every (message, phone) leaves exactly once, whoever enqueues and takes.
        @Test func fourHubsAtOnce() throws {
            let sent = Mutex<[String: Int]>([:])
            let inserted = Mutex(0)
            let empty = Mutex(0)
            let stage = stage
            try concurrently(4) { number in
                let store = try stage.hub("\(number)")
                for round in 0..<15 {
                    let drafts = (0..<10).flatMap { one in
                        ["ann", "bob"].map { AlertDraft.sample("m\(round)-\(one)", $0) }
                    }
                    let new = try store.enqueue(number.isMultiple(of: 2) ? drafts : drafts.reversed())
                    inserted.withLock { $0 += new.count(where: \.isNew) }
                    let taken = try store.takeDue(limit: 7)
                    empty.withLock { $0 += taken.withoutDevice }
                    if number == 3 {
                        _ = try store.decide([
                            AlertVerdict(message: "m0-0", user: "nobody", state: .dropped, reason: .shown)
                        ])
                    }
                    sent.withLock { sent in
                        for alert in taken.alerts {
                            for device in alert.devices {
                                sent["\(alert.message) \(device.destination.token.text)", default: 0] += 1
                            }
                        }
                    }
                }
            }
            while true {
                let taken = try store.takeDue(limit: 500)
                if taken.count == 0 { break }
                sent.withLock { sent in
                    for alert in taken.alerts {
                        for device in alert.devices {
                            sent["\(alert.message) \(device.destination.token.text)", default: 0] += 1
                        }
                    }
                }
            }
            #expect(inserted.withLock { $0 } == 300)
            #expect(empty.withLock { $0 } == 0, "nobody took what another had")
            let all = sent.withLock { $0 }
            #expect(all.count == 450)
            #expect(all.values.allSatisfy { $0 == 1 })
        }
    }
}

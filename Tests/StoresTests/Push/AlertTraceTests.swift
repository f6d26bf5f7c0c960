import ChangeFeed
import Hub
import Stores
import Synchronization
import Testing
import Wire

@testable import PostgresFixtures

extension StoreTests {
    /// What became of alerts, as the operator's page and `roost alerts` read it.
    @Suite struct AlertTraceTests {
        let stage: PushStage
        let reader: AlertTraceReader
        private static let token = "83a0bf12" + String(repeating: "c", count: 56)

        init() throws {
            stage = try PushStage.bare()
            reader = AlertTraceReader(conninfo: stage.database.conninfo, logger: .noting(stage.notes))
        }

        private func answer(_ subject: AlertTrace.Subject, limit: Int = 100) throws -> AlertTraceReader.Answer {
            let answers = TraceAnswers()
            reader.read(subject, limit: limit) { answers.add($0) }
            try eventually("an answer") { answers.count == 1 }
            return try #require(answers.all.first)
        }

        private func entries(_ subject: AlertTrace.Subject, limit: Int = 100) throws -> [AlertTrace.Entry] {
            guard case .found(let entries) = try answer(subject, limit: limit) else {
                throw TraceFailure(description: "\(try answer(subject))")
            }
            return entries
        }

        /// Messages of two tables, of which the keys of some end alike.
        private func fill() throws {
            let store = try stage.hub()
            let phone = PushDestination(
                token: try #require(PushToken(Self.token)), environment: .sandbox, bundle: "org.example.chat")
            _ = try store.register(phone, .alert, by: .sample("ann"))
            _ = try store.enqueue([.sample("public.messages 7", "ann")])
            #expect(try store.takeDue(limit: 10).alerts.count == 1)
            try store.settle([
                AlertSettlement(message: "public.messages 7", destination: phone, outcome: "delivered")
            ])
            _ = try store.enqueue([.sample("public.messages 7", "bob", .dropped, reason: .shown)])
            _ = try store.enqueue([.sample("public.messages 17", "ann", .held(until: 86_400_000), reason: .unproven)])
            _ = try store.enqueue([.sample("public.notes 7", "cat", .dropped, reason: .received)])
        }

        @Test func saysWhatBecameOfTheAlertsOfAUser() throws {
            defer { reader.stop() }
            try fill()
            let entries = try entries(.user("ann"))
            #expect(entries.map(\.message) == ["public.messages 17", "public.messages 7"], "the newest first")
            #expect(entries.map(\.state) == ["held", "taken"])
            #expect(entries.map(\.reason) == ["unproven", "away"])
            #expect(entries.map(\.phones) == [nil, "83a0bf12... delivered"])
            #expect(entries[0].at == 86_400_000, "until when it waits")
            let (created, taken) = (entries[1].createdAt, try #require(entries[1].at))
            #expect(taken >= created && abs(created - unixTime(in: 0)) < 3_600_000)
            #expect(try self.entries(.user("ann"), limit: 1).map(\.message) == ["public.messages 17"])
            #expect(try self.entries(.user("dan")).isEmpty)
            #expect(try self.entries(.user("ann\0")).isEmpty, "libpq would ask for ann")
        }

        @Test func findsMessagesByTheirKeys() throws {
            defer { reader.stop() }
            try fill()
            func found(_ message: String) throws -> [String] {
                try entries(.message(message)).map { "\($0.message) \($0.user) \($0.state)" }.sorted()
            }
            #expect(
                try found("7")
                    == ["public.messages 7 ann taken", "public.messages 7 bob dropped", "public.notes 7 cat dropped"])
            #expect(try found("public.notes 7") == ["public.notes 7 cat dropped"])
            #expect(try found("17") == ["public.messages 17 ann held"])
            #expect(try found("messages 7").isEmpty && found("%").isEmpty)
        }

        @Test("One question at a time, for a while at most, and few may wait")
        func whatQuestionsMayCost() throws {
            let blocker = try stage.database.session()
            try blocker.runScript("begin; lock table roost.alert")
            let answers = TraceAnswers()
            for _ in 0..<40 { reader.read(.user("ann"), limit: 1) { answers.add($0) } }
            // One is asked, and sixteen wait.
            #expect(answers.count >= 23 && answers.count <= 24)
            let refusal = AlertTraceReader.Answer.failed(
                "Too many questions about alerts wait already; ask again later.")
            #expect(answers.all.allSatisfy { $0 == refusal })
            let refused = answers.count
            try eventually("an end of the first question") { answers.count > refused }
            #expect(
                answers.all.last == .failed("Postgres took too long to find them; `roost alerts` waits longer."))
            #expect(
                try stage.lines(
                    """
                    select count(*)::text from pg_stat_activity
                    where application_name = 'roost alerts' and datname = current_database()
                    """) == ["1"])
            try blocker.runScript("rollback")
            try eventually("all answers") { answers.count == 40 }
            #expect(answers.all.last == .found([]), "the session is good for the next ones")
            reader.stop()
            reader.read(.user("ann"), limit: 1) { answers.add($0) }
            #expect(answers.count == 41)
        }

        @Test func saysThatPostgresIsAway() throws {
            let reader = AlertTraceReader(conninfo: "host=/nowhere", logger: .noting(stage.notes))
            let answers = TraceAnswers()
            reader.read(.user("ann"), limit: 1) { answers.add($0) }
            try eventually("an answer") { answers.count == 1 }
            guard case .failed(let sentence) = answers.all.first else { throw TraceFailure(description: "it is found") }
            #expect(sentence.hasPrefix("Postgres cannot be reached ("))
            reader.stop()
        }
    }
}

private struct TraceFailure: Error, CustomStringConvertible {
    let description: String
}

/// What a reader answered, in order.
private final class TraceAnswers: Sendable {
    private let content = Mutex<[AlertTraceReader.Answer]>([])

    func add(_ answer: AlertTraceReader.Answer) { content.withLock { $0.append(answer) } }

    var all: [AlertTraceReader.Answer] { content.withLock { $0 } }
    var count: Int { all.count }
}

import ChangeFeed
import Foundation
import Hub
import Stores
import Testing
import Wire

@testable import PostgresFixtures

extension StoreTests {
    /// What an alert costs the desk's thread, from the inserted row to the claimed phone. Run alone, with
    /// `ROOST_BENCH=1 swift test -c release --filter PushBench`; prints, and asserts only that all arrived.
    @Suite(.enabled(if: getenv("ROOST_BENCH") != nil)) struct PushBench {
        private static let messages = 1000

        @Test(arguments: [1000, 100, 10, 1]) func alerts(batch: Int) throws {
            let stage = try PushStage.chat()
            try stage.database.run(
                """
                insert into users select md5('u' || n)::uuid, 'User ' || n from generate_series(1, 1000) n;
                insert into conversations select md5('c' || n)::uuid, 'Room ' || n from generate_series(1, 250) n;
                insert into conversation_participants (conversation_id, user_id)
                    select md5('c' || (n / 4 + 1))::uuid, md5('u' || (n + 1))::uuid from generate_series(0, 999) n;
                insert into messages (conversation_id, sender_id, body)
                    select md5('c' || (n % 250 + 1))::uuid, md5('u' || (n % 250 * 4 + 1))::uuid, 'a message that is old'
                    from generate_series(1, 10000) n;
                insert into roost.push_device (token, environment, bundle, kind, user_id, role, claims)
                    select md5('u' || n), 'production', 'org.example.chat', 'alert', md5('u' || n)::uuid::text,
                        'authenticated', jsonb_build_object('sub', md5('u' || n)::uuid, 'role', 'authenticated')
                    from generate_series(1, 1000) n;
                analyze;
                """)
            let changes = try stage.inserts(
                """
                insert into messages (conversation_id, sender_id, body)
                select md5('c' || (n % 250 + 1))::uuid, md5('u' || (n % 250 * 4 + 1))::uuid, 'a message of an ordinary length'
                from generate_series(1, \(Self.messages)) n
                """, count: Self.messages)
            let store = try stage.hub()
            _ = try store.audience(for: Array(changes.prefix(1)), statement: PushStore.audienceOfSampleChat)
            var (audience, enqueue, take, settle) = (Duration.zero, Duration.zero, Duration.zero, Duration.zero)
            let clock = ContinuousClock()
            var alerts = 0
            for start in stride(from: 0, to: changes.count, by: batch) {
                let piece = Array(changes[start..<min(start + batch, changes.count)])
                var members: [AudienceMember] = []
                audience += try clock.measure {
                    members = try store.audience(for: piece, statement: PushStore.audienceOfSampleChat).members
                }
                let drafts = members.map {
                    AlertDraft(
                        message: Name("public.messages:\(piece[$0.change].id)"), user: $0.user, conversation: "c",
                        variables: $0.variables, expiresAt: unixTime(in: 3600), state: .due)
                }
                enqueue += try clock.measure { _ = try store.enqueue(drafts) }
                var taken: [DueAlert] = []
                take += try clock.measure {
                    while true {
                        let some = try store.takeDue(limit: 500)
                        taken += some.alerts
                        if some.count < 500 { break }
                    }
                }
                alerts += taken.count
                settle += try clock.measure {
                    try store.settle(
                        taken.map {
                            AlertSettlement(
                                message: $0.message, destination: $0.devices[0].destination, outcome: "delivered")
                        })
                }
            }
            #expect(alerts == 3 * Self.messages)
            let figures = [audience, enqueue, take, settle].map {
                String(format: "%.1f", $0 / .microseconds(1) / Double(alerts))
            }
            print(
                "batches of \(batch): \(alerts) alerts; us per alert: audience \(figures[0]), enqueue \(figures[1]), "
                    + "take \(figures[2]), settle \(figures[3])")
        }
    }
}

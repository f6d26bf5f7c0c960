import Administration
import ChangeFeed
import Stores
import Testing

@testable import PostgresFixtures

extension CommandTests {
    @Suite struct AlertDoctorTests {
        private let database: Database

        init() throws { database = try PostgresCluster.shared.migratedDatabase().prepared("select 1") }

        private func findings(_ condition: String = "unseen", many: Int = 3) -> [Finding] {
            Doctor.examineAlerts(alertsWhen: condition, proofSeconds: 5, conninfo: database.conninfo, many: many)
        }

        private func warnings(_ condition: String = "unseen", many: Int = 3) -> [String] {
            findings(condition, many: many).filter { $0.severity != .good }.map(\.message)
        }

        /// Alerts of some hours ago, each of another user.
        private func alerts(
            _ reason: String, _ state: String, _ count: Int, dueAfter seconds: Int = 0, hours: Int = 1
        ) throws {
            try database.run(
                """
                insert into roost.alert (message, user_id, variables, expires_at, state, due_at, node, created_at, reason)
                select 'public.messages ' || n, '\(reason) \(state) \(seconds) \(hours) ' || n, '{}', now(), '\(state)',
                       created + interval '\(seconds) seconds', 'a', created, '\(reason)'
                from generate_series(1, \(count)) n, (select now() - interval '\(hours) hours' as created) c
                """)
        }

        @Test func saysWhomAlertsAreFor() {
            for condition in ["unseen", "unreceived", "away"] {
                #expect(findings(condition).first?.message.hasPrefix("alerts.when is \(condition): ") ?? false)
                #expect(warnings(condition).isEmpty)
            }
            #expect(findings("away").count == 2, "nobody is asked for a proof")
            #expect(
                Doctor.examineAlerts(alertsWhen: "unseen", proofSeconds: 5, conninfo: "host=/nowhere").map(\.severity)
                    == [.error])
        }

        @Test func proofsThatNeverCome() throws {
            // Decided on without a question to any app, or not of this day.
            try alerts("away", "taken", 50)
            try alerts("hidden", "taken", 50)
            try alerts("shown", "dropped", 50, hours: 25)
            try alerts("unproven", "held", 50)
            try alerts("unproven", "taken", 2)
            #expect(warnings().isEmpty)
            try alerts("unproven", "expired", 2)
            #expect(warnings(many: 5).isEmpty)
            #expect(warnings().count == 1 && warnings("away").isEmpty)
            let never = try #require(warnings().first)
            #expect(never.hasPrefix("Apps were asked to prove 4 messages in the last day; none was proven, and 4 were"))
            #expect(never.contains("4 users") && never.contains("pings"))
            try alerts("shown", "dropped", 2)
            #expect(try #require(warnings().first).contains("say app_state"))
            try alerts("received", "dropped", 2)
            #expect(warnings().isEmpty, "half of them is not most of them")
        }

        @Test func hubsThatSayNothing() throws {
            try alerts("away", "taken", 3, dueAfter: 29)
            #expect(warnings().isEmpty)
            try alerts("away", "taken", 3, dueAfter: 30)
            #expect(try #require(warnings().first).hasPrefix("3 alerts of the last day were sent 30 s late"))
            // It serves users, and has never sent pushes.
            try database.run("insert into roost.online_user values ('silent', 'ann', now()), ('a', 'ann', now())")
            try database.run("insert into roost.push_hub values ('a', now())")
            #expect(try #require(warnings().first).hasPrefix("Hubs that have users online send no pushes (silent)"))
            try database.run(
                """
                insert into roost.alert (message, user_id, variables, expires_at, state, due_at, node, created_at, said)
                select m, 'ann', '{}', now(), 'elsewhere', created + interval '30 seconds', 'a', created, '{a}'
                from (values ('public.messages 101', now() - interval '1 hour'), ('public.messages 102', now())) n (m, created)
                """)
            #expect(
                try #require(warnings().first).hasPrefix(
                    "Alerts wait, each for 30 s, for hubs that have users online and say nothing (silent: 1)"))
            try database.run("update roost.alert set said = said || 'silent'::text")
            try database.run("insert into roost.push_hub values ('silent', now())")
            #expect(try #require(warnings().first).hasPrefix("3 alerts"))
        }
    }
}

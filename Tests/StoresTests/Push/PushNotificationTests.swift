import ChangeFeed
import Hub
import Matching
import Postgres
import Stores
import Testing
import Wire

@testable import PostgresFixtures

extension StoreTests {
    /// `roost.notify()`, and what becomes of what it writes.
    @Suite struct PushNotificationTests {
        private static let (ann, bob, cat) = (Database.ann, Database.bob, Database.cat)

        private func notification(_ json: String, number: Int64 = 7) -> RowChange {
            RowChange(
                id: number, table: .notifications, operation: .insert, commitTimestamp: "", record: Array(json.utf8),
                oldRecord: nil, isReduced: false)
        }

        private func written(_ stage: PushStage) throws -> [String] {
            try stage.lines("select op::text || ' ' || record from roost.change where op = 'N' order by id")
        }

        @Test func isWrittenInTheCallersTransaction() throws {
            let stage = try PushStage.bare()
            let call = #"select roost.notify('{"userId": "ann", "title": "T", "id": "7"}')"#
            try stage.database.run("begin; \(call); rollback")
            #expect(try written(stage).isEmpty)
            #expect(try stage.lines(call) == ["7"])
            #expect(try written(stage) == [#"N {"id": "7", "title": "T", "userId": "ann"}"#])
            // Without an id one is made up, and returned.
            let made = try stage.lines(#"select roost.notify('{"userId": "ann", "body": "B", "id": null}')"#)
            #expect(made.first?.count == 36)
            #expect(try written(stage).last?.contains(made.first ?? "none") == true)
        }

        @Test(arguments: [
            "null", "[]", #""x""#, "{}", #"{"userId": "a"}"#, #"{"title": "T"}"#,
            #"{"userId": "a", "userIds": ["b"], "title": "T"}"#,
            #"{"userIds": [], "title": "T"}"#, #"{"userIds": "a", "title": "T"}"#,
            #"{"userIds": ["a", 7], "title": "T"}"#,
            #"{"userIds": ["a", ""], "title": "T"}"#, #"{"userId": "", "title": "T"}"#,
            #"{"userId": {}, "title": "T"}"#,
            #"{"audience": {}, "title": "T"}"#, #"{"audience": {"table": "messages", "record": {}}, "title": "T"}"#,
            #"{"userId": "a", "title": ""}"#, #"{"userId": "a", "title": 7}"#,
            #"{"userId": "a", "title": "T", "when": "never"}"#,
            #"{"userId": "a", "title": "T", "data": []}"#, #"{"userId": "a", "title": "T", "data": {"aps": 1}}"#,
            #"{"userId": "a", "title": "T", "badge": "3"}"#, #"{"userId": "a", "title": "T", "badge": -1}"#,
            #"{"userId": "a", "title": "T", "badge": 1.5}"#, #"{"userId": "a", "title": "T", "relevanceScore": 7}"#,
            #"{"userId": "a", "title": "T", "relevanceScore": "x"}"#,
            #"{"userId": "a", "title": "T", "interruptionLevel": "loud"}"#,
            #"{"userId": "a", "title": "T", "id": ""}"#, #"{"userId": "a", "title": "T", "sound": {}}"#,
        ])
        func whoeverCallsItWronglyIsTold(_ json: String) throws {
            let stage = try PushStage.bare()
            let error = #expect(throws: (any Error).self) {
                try stage.database.run("select roost.notify('\(json)')")
            }
            #expect("\(error.map { "\($0)" } ?? "")".contains("roost.notify: "))
            #expect(try written(stage).isEmpty)
        }

        /// What SQL takes and what the hub takes is the same, as a hub can tell nobody of what came by SQL.
        @Test(arguments: [
            #"{"userId": "a", "title": "T"}"#,
            #"{"userIds": ["a", "b"], "body": "B", "title": null, "audience": null}"#,
            #"{"audience": {"table": "public.messages", "record": {"x": null}}, "body": "B"}"#,
            #"{"userId": "a", "title": "T", "data": {"x": null, "y": [1]}, "badge": 0, "sound": "", "relevanceScore": 1}"#,
            #"{"userId": "a", "title": "T", "when": "always", "interruptionLevel": "critical", "collapseId": "c", "category": "K"}"#,
            #"{"userId": "a", "title": "T", "conversationId": "c", "subtitle": "S", "id": "i", "badge": 999999999}"#,
        ])
        func whatSQLTakesAHubTakes(_ json: String) throws {
            let stage = try PushStage.bare()
            try stage.database.run("select roost.notify('\(json)')")
            let record = try stage.lines("select record from roost.change where op = 'N'")
            let read = try UserNotification(try JSON(parsing: Array(record[0].utf8))) { "none" }
            #expect(read.id != "none")
        }

        @Test func itCostsOneCallerSoMuch() throws {
            let stage = try PushStage.bare()
            func call(_ users: Int, data: Int = 0) throws {
                try stage.database.run(
                    """
                    select roost.notify(jsonb_build_object('userIds', (select jsonb_agg('u' || n) from generate_series(1, \(users)) n),
                        'title', 'T', 'data', jsonb_build_object('x', repeat('x', \(data)))))
                    """)
            }
            try call(1000, data: 3400)
            #expect(throws: (any Error).self) { try call(1001) }
            #expect(throws: (any Error).self) { try call(1, data: 3600) }
            #expect(throws: (any Error).self) {
                try stage.database.run(
                    "select roost.notify(jsonb_build_object('userId', 'a', 'title', repeat('x', 16385)))")
            }
            #expect(throws: (any Error).self) {
                try stage.database.run(
                    """
                    select roost.notify(jsonb_build_object('userIds', (select jsonb_agg(repeat('u', 900) || n)
                        from generate_series(1, 100) n), 'title', 'T'))
                    """)
            }
            #expect(try written(stage).count == 1)
        }

        @Test func usersMayNotCallIt() throws {
            let database = try PostgresCluster.shared.database()
            try database.createClientRoles()
            let stage = PushStage(try database.prepared(""))
            let call = #"select roost.notify('{"userId": "ann", "title": "T"}')"#
            for role in ["anon", "authenticated"] {
                #expect(throws: (any Error).self) {
                    try stage.database.run("begin; set local role \(role); \(call); commit")
                }
            }
            #expect(try written(stage).isEmpty)
            try stage.database.run("begin; set local role service_role; \(call); commit")
            #expect(try written(stage).count == 1)
            // Nothing else of the schema is opened by that.
            #expect(throws: (any Error).self) {
                try stage.database.run("begin; set local role service_role; select * from roost.push_device; commit")
            }
        }

        @Test func thoseWhoAreNamedAndHaveAPhone() throws {
            let stage = try PushStage.bare()
            let store = try stage.hub()
            _ = try store.register(.sample(1), .alert, by: .sample("ann"))
            _ = try store.register(activity: "x", at: .sample(9), about: nil, by: .sample("cat"))
            let sent = notification(
                #"{"id": "7", "userIds": ["ann", "bob", "cat"], "title": "T", "conversationId": "c", "when": "always"}"#
            )
            let audience = try store.audience(for: [sent], statement: AudienceStatement.ofNobody)
            #expect(audience.members.map(\.user) == ["ann"] && audience.failed == 0 && audience.unanswered.isEmpty)
            #expect(
                audience.members.map { String(decoding: $0.variables, as: UTF8.self) } == [
                    #"{"conversation_id":"c","roost.notification":{"title":"T","conversationId":"c","when":"always"}}"#
                ])
            // What cannot be read, such as one that was written past the function, keeps no other.
            let wrong = notification(#"{"userIds": 7}"#)
            let both = try store.audience(for: [wrong, sent], statement: AudienceStatement.ofNobody)
            #expect(both.failed == 1 && both.members.map(\.change) == [1])
            #expect(stage.said("is not sent"))
        }

        @Test func whatACallerIsTold() throws {
            let stage = try PushStage.bare()
            let store = try stage.hub()
            _ = try store.register(.sample(1), .alert, by: .sample("ann", session: "phone"))
            _ = try store.register(.sample(2), .alert, by: .sample("ann", session: "tablet"))
            _ = try store.register(activity: "x", at: .sample(9), about: nil, by: .sample("cat"))
            let json = #"{"id": "7", "userIds": ["ann", "bob", "cat"], "title": "T"}"#
            let sent = try UserNotification(try JSON(parsing: Array(json.utf8))) { "" }
            func told() throws -> [String] {
                guard case .users(let users) = try store.recipients(of: sent, statement: AudienceStatement.ofNobody)
                else { return [] }
                return users.map { "\($0.user) \($0.phones) \($0.isKnown) \($0.isRepeated)" }
            }
            #expect(try told() == ["ann 2 true false", "bob 0 false false", "cat 0 true false"])
            _ = try store.enqueue([.sample(sent.key.text, "ann")])
            #expect(try told() == ["ann 2 true true", "bob 0 false false", "cat 0 true false"])
        }

        /// Whom the operator's statement would name for a row that need not be there; no policy is asked.
        @Test func anAudience() throws {
            let stage = try PushStage.chat()
            let store = try stage.hub()
            for (number, user) in [Self.ann, Self.bob, Self.cat].enumerated() {
                _ = try store.register(.sample(number + 1), .alert, by: .sample(user))
            }
            try stage.database.run(
                """
                create policy nobody on messages as restrictive for select using (false);
                update conversation_participants set muted = true where user_id = '\(Self.bob)';
                """)
            let row = #"{"conversation_id": "\#(PushStage.room)", "sender_id": "\#(Self.cat)"}"#
            let json = #"{"id": "7", "audience": {"table": "public.messages", "record": \#(row)}, "title": "T"}"#
            let sent = try UserNotification(try JSON(parsing: Array(json.utf8))) { "" }
            let members = try store.audience(for: [notification(json)], statement: PushStore.audienceOfSampleChat)
                .members
            #expect(Set(members.map(\.user.text)) == [Self.ann, Self.bob])
            #expect(members.filter(\.isMuted).map(\.user.text) == [Self.bob])
            guard case .users(let users) = try store.recipients(of: sent, statement: PushStore.audienceOfSampleChat)
            else {
                Issue.record("no users")
                return
            }
            #expect(users.map(\.user.text) == [Self.ann], "who has muted it is not told of it")
            #expect(try store.recipients(of: sent, statement: AudienceStatement.ofNobody) == .failed)
            let crowd =
                "select n.row, 'u' || g as user_id from jsonb_to_recordset($1) n (row int), generate_series(1, 1001) g"
            try stage.database.run(
                """
                insert into roost.push_device (token, environment, bundle, kind, user_id, role, claims)
                select md5(g::text), 'sandbox', 'b', 'alert', 'u' || g, 'authenticated', '{}' from generate_series(1, 1001) g
                """)
            #expect(try store.recipients(of: sent, statement: crowd) == .failed)
            #expect(stage.said("more than 1000 users"))
        }

        @Test("What is to be sent always waits for no hub, and no proof drops it")
        func whatIsSentAlwaysStays() throws {
            let stage = try PushStage.bare()
            let store = try stage.hub()
            _ = try store.register(.sample(1), .alert, by: .sample("ann"))
            try stage.online("ann", at: "b")
            let put = try store.enqueue([.sample("notify:1", "ann", reason: .always), .sample("notify:2", "ann")])
            #expect(put.filter(\.isElsewhere).map(\.message) == ["notify:2"])
            let dropped = try stage.hub("b").decide(
                ["notify:1", "notify:2"].map {
                    AlertVerdict(message: $0, user: "ann", state: .dropped, reason: .shown)
                })
            #expect(dropped == 1)
            #expect(try store.takeDue(limit: 10).alerts.map(\.message) == ["notify:1"])
        }
    }
}

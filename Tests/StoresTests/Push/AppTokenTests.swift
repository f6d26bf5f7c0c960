import Administration
import ChangeFeed
import Hub
import Matching
import Postgres
import Stores
import Testing
import Wire

@testable import PostgresFixtures

extension StoreTests {
    /// Phones that the application itself keeps (`alerts.tokens`).
    @Suite struct AppTokenTests {
        private static let (ann, bob, cat) = (Database.ann, Database.bob, Database.cat)
        private static let everybody = "select n.row, u.id as user_id from jsonb_to_recordset($1) n (row int), users u"
        private static let statement = """
            select id as user_id, push_token as token, environment, bundle from phones where id = any ($1::text[]) and is_sane();
            """

        private let stage: PushStage
        private let store: PushStore
        private let changes: [RowChange]

        init() throws {
            stage = try PushStage.chat()
            try stage.database.run(
                """
                create table phones (id text, push_token text, environment text, bundle text);
                create function is_sane() returns boolean language sql as 'select true';
                """)
            store = try stage.hub(tokens: Self.statement)
            changes = try stage.inserts(
                "insert into messages (conversation_id, sender_id, body) values ('\(PushStage.room)', '\(Self.cat)', 'hi')",
                count: 1)
        }

        private static func hex(_ number: Int) -> String { PushDestination.sample(number).token.text }

        private func give(_ user: String, _ tokens: Int..., environment: String = "null") throws {
            try stage.database.run("delete from phones where id = '\(user)'")
            for token in tokens {
                try stage.database.run(
                    "insert into phones values ('\(user)', '\(Self.hex(token).uppercased())', \(environment))")
            }
        }

        /// Who would be alerted of the message.
        private func heard() throws -> [String] {
            try store.audience(for: changes, statement: Self.everybody).members.filter(\.hasDevice).map {
                String($0.user.text.suffix(1))
            }.sorted()
        }

        /// What phones there are: user, token's last digit, kind.
        private func phones() throws -> [String] {
            try stage.lines(
                """
                select right(user_id, 1) || ' ' || ltrim(token, '0') || ' ' || kind || case when from_app then ' app' else '' end
                from roost.push_device order by 1
                """)
        }

        private func dead(_ number: Int) throws -> Int {
            try store.drop(
                PushDestination(
                    token: PushDestination.sample(number).token, environment: .production, bundle: "org.example.app"),
                ifRegisteredBefore: nil)
        }

        @Test func areThereWhenTheyAreNeeded() throws {
            #expect(try heard().isEmpty)
            try give(Self.ann, 1)
            try give(Self.bob, 2, 3, environment: "'sandbox'")
            #expect(try heard() == ["a", "b"])
            #expect(try phones() == ["a 1 alert app", "b 2 alert app", "b 3 alert app"])
            #expect(try store.devices(of: Name(Self.ann)).map(\.destination.environment) == [.production])
            #expect(try store.devices(of: Name(Self.bob)).map(\.destination.environment) == [.sandbox, .sandbox])
            // Another value takes the place of the one before, and none the phone away.
            try give(Self.ann, 4)
            try give(Self.bob, 3, environment: "'sandbox'")
            #expect(try heard() == ["a", "b"])
            #expect(try phones() == ["a 4 alert app", "b 3 alert app"])
            try give(Self.bob)
            #expect(try heard() == ["a"])
        }

        @Test func areAskedForByNotifications() throws {
            try give(Self.ann, 1)
            let json = #"{"id": "7", "userIds": ["\#(Self.ann)", "\#(Self.bob)"], "title": "T"}"#
            let sent = try UserNotification(try JSON(parsing: Array(json.utf8))) { "" }
            guard case .users(let users) = try store.recipients(of: sent, statement: AudienceStatement.ofNobody) else {
                return
            }
            #expect(users.map(\.phones) == [1, 0])
        }

        /// A 410 is remembered until the application has another value.
        @Test func theDeadStayDead() throws {
            try give(Self.ann, 1)
            #expect(try heard() == ["a"])
            #expect(try dead(1) == 1)
            #expect(try phones() == ["a 1 gone app"] && store.devices(of: Name(Self.ann)).isEmpty)
            for _ in 0..<2 { #expect(try heard().isEmpty, "the application still has it") }
            #expect(try phones() == ["a 1 gone app"])
            try give(Self.ann, 2)
            #expect(try heard() == ["a"])
            #expect(try phones() == ["a 2 alert app"])
            try give(Self.ann, 1)
            #expect(try heard() == ["a"], "it came back, so it is tried")
            // Apple's word is for a moment: what the application got since lives.
            #expect(
                try store.drop(
                    PushDestination(
                        token: PushDestination.sample(1).token, environment: .production, bundle: "org.example.app"),
                    ifRegisteredBefore: 1000) == 0)
        }

        @Test func whatAUserRegistersComesFirst() throws {
            try give(Self.ann, 1)
            #expect(try heard() == ["a"])
            let same = PushDestination(
                token: PushDestination.sample(1).token, environment: .production, bundle: "org.example.app")
            _ = try store.register(same, .alert, by: .sample(Self.bob))
            #expect(try heard() == ["b"], "the phone is in other hands, whatever the application says")
            #expect(try phones() == ["b 1 alert"])
            _ = try store.unregister(same.token, of: Name(Self.bob))
            #expect(try heard() == ["a"])
        }

        @Test func aPhoneThatChangesHands() throws {
            try give(Self.ann, 1)
            #expect(try heard() == ["a"])
            try give(Self.bob, 1)
            #expect(try heard() == ["a"], "the application has it for two: whose it is nobody knows")
            try give(Self.ann)
            #expect(try heard() == ["b"])
            #expect(try phones() == ["b 1 alert app"])
            // Also where only the new one is asked about.
            try give(Self.bob)
            try give(Self.cat, 1)
            let catAlone = "select n.row, '\(Self.cat)' as user_id from jsonb_to_recordset($1) n (row int)"
            #expect(try store.audience(for: changes, statement: catAlone).members.count == 1)
            #expect(try phones() == ["c 1 alert app"])
        }

        /// Such a user has registered no claims: the policies are asked for the id, as `authenticated`, and for nothing more.
        @Test func claimsAreTheUsersIdAlone() throws {
            try give(Self.ann, 1)
            try give(Self.bob, 2)
            #expect(try heard() == ["a", "b"])
            #expect(
                try stage.lines("select role || ' ' || claims from roost.push_device where user_id = '\(Self.ann)'")
                    == [#"authenticated {"sub": "\#(Self.ann)", "role": "authenticated"}"#])
            try stage.database.run(
                """
                create policy level on messages as restrictive for select to authenticated using (
                    current_setting('request.jwt.claims', true)::jsonb ->> 'level' = 'gold' or sender_id::text = 'x');
                """)
            try eventually("the store hears of the policy") { try heard().isEmpty }
            // Whoever registered something is asked for with the claims of that, however new the application's phone is.
            _ = try store.register(
                activity: "x", at: .sample(9), about: nil, by: .sample(Self.ann, more: #","level":"gold""#))
            try give(Self.ann, 3)
            #expect(try heard() == ["a"])
        }

        @Test func whatIsNoTokenIsPassedOver() throws {
            try give(Self.ann, 1)
            try stage.database.run(
                """
                insert into phones (id, push_token, environment)
                values ('\(Self.ann)', 'ExponentPushToken[x]', null), ('\(Self.ann)', '', null), ('\(Self.ann)', null, null),
                    ('\(Self.bob)', '\(Self.hex(2))', 'moon'), ('somebody', '\(Self.hex(3))', null);
                """)
            #expect(try heard() == ["a"])
            #expect(try phones() == ["a 1 alert app"] && stage.said("2 tokens of alerts.tokens"))
        }

        /// It costs no more than that: rows, time, writing.
        @Test func areOfAllServices() throws {
            let keys = (
                Base64URL.encode([4] + [UInt8](repeating: 7, count: 64)),
                Base64URL.encode([UInt8](repeating: 9, count: 16))
            )
            let store = try stage.hub(
                "b",
                tokens: """
                    select * from (values
                        ('\(Self.ann)', 'cX:0123456789abcdef', 'fcm', null, null),
                        ('\(Self.bob)', 'https://push.example.com/abc', 'web', '\(keys.0)', '\(keys.1)'),
                        ('\(Self.bob)', 'https://push.example.com/def', 'web', null, null),
                        ('\(Self.cat)', '\(Self.hex(7))', null, null, null)
                    ) t (user_id, token, kind, p256dh, auth) where user_id = any ($1)
                    """)
            _ = try store.audience(for: changes, statement: Self.everybody)
            let lines = try stage.lines(
                "select right(user_id, 1) || ' ' || environment || ' ' || coalesce(keys, '-') from roost.push_device order by 1"
            )
            #expect(lines == ["a fcm -", "b web \(keys.0).\(keys.1)", "c production -"])
            #expect(stage.said("1 tokens of alerts.tokens"))
            _ = try store.audience(for: changes, statement: Self.everybody)
            #expect(try stage.lines("select count(*)::text from roost.push_device") == ["3"], "and nothing changes")
        }

        @Test func isBounded() throws {
            try give(Self.ann, 1)
            #expect(try heard() == ["a"])
            try stage.database.run(
                "insert into phones select '\(Self.bob)', md5(g::text) from generate_series(1, 61) g")
            #expect(try heard() == ["a"] && stage.said("returns more than 60 rows"))
            try stage.database.run("delete from phones where push_token <> '\(Self.hex(1))' and id = '\(Self.bob)'")
            try stage.database.run(
                "insert into phones select '\(Self.bob)', md5(g::text) from generate_series(1, 30) g")
            #expect(try heard() == ["a", "b"])
            #expect(try store.devices(of: Name(Self.bob)).count == PushStore.devicesPerUser)
            // It may not write, and has two seconds; meanwhile users whose phones are known are alerted, and the others later.
            try give(Self.cat, 5)
            try stage.database.run(
                "create or replace function is_sane() returns boolean language sql as 'select pg_sleep(60) is not null'"
            )
            let slow = try store.audience(for: changes, statement: Self.everybody)
            #expect(slow.unanswered == [0] && Set(slow.members.map { String($0.user.text.suffix(1)) }) == ["a", "b"])
            try stage.database.run(
                """
                create or replace function is_sane() returns boolean language plpgsql as
                    $$ begin delete from phones; return true; end $$
                """)
            let writing = try store.audience(for: changes, statement: Self.everybody)
            #expect(writing.unanswered.isEmpty && writing.members.count == 2)
            #expect(stage.said("alerts.tokens fails") && !store.isBroken)
        }

        /// An id that the statement cannot take, such as one that is no uuid, keeps no other.
        @Test func oneUserKeepsNoOther() throws {
            try give(Self.ann, 1)
            let strict = try PushStore(
                conninfo: stage.database.conninfo, node: "b",
                tokens: AppTokens(
                    "select id as user_id, push_token as token from phones where id::uuid = any ($1::uuid[])",
                    environment: .production, bundle: "org.example.app"), logger: .noting(stage.notes))
            let names =
                "select n.row, u as user_id from jsonb_to_recordset($1) n (row int), unnest('{\(Self.ann),nobody}'::text[]) u"
            #expect(try strict.audience(for: changes, statement: names).members.map(\.user.text) == [Self.ann])
        }

        @Test func doctor() throws {
            func findings(_ statement: String) -> [Finding] {
                Doctor.examine(
                    tokens: AppTokens(statement, environment: .production, bundle: "b"),
                    conninfo: stage.database.conninfo)
            }
            #expect(findings(Self.statement).map(\.severity) == [.good])
            #expect(findings("select id from phones where id = any ($1)")[0].message.contains("user_id"))
            #expect(
                findings("delete from phones where id = any ($1::text[]) returning id as user_id, '' as token")[0]
                    .severity == .error)
            let sections = Doctor.examine(
                templates: ["public.messages": ["preview", "text", "badge"], "public.reminders": ["sender_name"]],
                tables: ["public.messages"], audience: PushStore.audienceOfSampleChat, conninfo: stage.database.conninfo
            )
            #expect(sections.map(\.severity) == [.warning, .warning])
            #expect(sections[0].message.contains("public.reminders, whose rows alert nobody"))
            #expect(sections[1].message.contains("{text}, which alerts.audience does not return"))
            #expect(
                Doctor.examine(
                    templates: ["public.messages": ["preview", "message_id"]], tables: ["public.messages"],
                    audience: PushStore.audienceOfSampleChat, conninfo: stage.database.conninfo
                ).map(\.severity) == [.good])
        }
    }
}

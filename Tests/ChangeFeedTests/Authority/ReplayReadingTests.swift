import Administration
import ChangeFeed
import Hub
import Testing

@testable import PostgresFixtures

extension FeedTests {
    /// What `config.broadcast.replay` finds.
    @Suite struct ReplayReadingTests {
        private static let policy = "create policy p on realtime.messages to anon using (extension = 'broadcast');"

        private func stage(_ script: String = "", user: String = "postgres") throws -> AuthorityStage {
            try AuthorityStage(
                Self.policy
                    + """
                    insert into realtime.messages (topic, extension, event, payload, private, inserted_at)
                    select 'room', 'broadcast', 'e' || n, json_build_object('n', n), true,
                        '2026-01-01'::timestamp + n * interval '1 s' from generate_series(1, 40) n;
                    """ + script, user: user)
        }

        /// 2026-01-01 in milliseconds.
        private static let start = 1_767_225_600_000

        @Test func theNewestOldestFirst() throws {
            let stage = try stage()
            let lines = try stage.replay("anon", since: 0).map(\.line)
            #expect(lines == (16...40).map { "e\($0) {\"n\": \($0)}" })
            try #expect(stage.replay("anon", since: 0, limit: 2).map(\.event) == ["e39", "e40"])
        }

        /// Messages that take long to read cost a batch three seconds, however many ask for them: whoever is left is refused.
        @Test func slowReplaysEndTogether() throws {
            let stage = try stage(
                """
                create sequence slow_reads;
                create table awake ();
                create type slow as enum ('s');
                create function slow_as_json(slow) returns json language plpgsql as $$
                    begin
                        if not exists (select from public.awake) then
                            perform nextval('public.slow_reads'), pg_sleep(60);
                        end if;
                        return 'null';
                    end $$;
                insert into awake default values;
                create cast (slow as json) with function slow_as_json(slow);
                alter table realtime.messages add slow slow;
                insert into realtime.messages (topic, extension, event, payload, private, slow)
                    values ('slow', 'broadcast', 'e', '{}', true, 's');
                delete from awake;
                """)
            let right = AuthorizationQuestion.Right.read(replay: ReplayRequest(since: 0, limit: 25))
            let questions = (0..<10).map {
                AuthorizationQuestion(claims: AuthorityStage.claims("anon", "\($0)"), topic: "slow", right: right)
            }
            let answers = try stage.ask(questions, within: .seconds(60))
            #expect(answers.map(\.words) == Array(repeating: "replay failed", count: 10))
            let reads = try stage.session.queryRows("select last_value from slow_reads")[0][0].flatMap { Int($0) } ?? 0
            #expect((1..<10).contains(reads), "\(reads)")
            try #expect(stage.session.queryRows("select from pg_stat_activity where wait_event = 'PgSleep'").isEmpty)
            try #expect(stage.replay("anon", since: 0).count == 25, "and others are served")
        }

        @Test func sinceIsIncluded() throws {
            let stage = try stage()
            try #expect(stage.replay("anon", since: Self.start + 39_000).map(\.event) == ["e39", "e40"])
            try #expect(stage.replay("anon", since: Self.start + 39_001).map(\.event) == ["e40"])
            try #expect(stage.replay("anon", since: Self.start + 41_000).isEmpty)
            for since in [-62_167_219_200_000, 253_402_300_799_999] {
                try #expect(stage.replay("anon", since: since).count == (since < 0 ? 25 : 0))
            }
        }

        @Test func onlyPrivateBroadcastsOfTheTopicUpToNow() throws {
            let stage = try stage(
                """
                insert into realtime.messages (topic, extension, event, payload, private, inserted_at) values
                    ('room', 'presence', 'no', '{}', true, '2026-02-01'), ('room', 'broadcast', 'no', '{}', false, '2026-02-01'),
                    ('room', 'broadcast', 'no', '{}', null, '2026-02-01'), ('other', 'broadcast', 'no', '{}', true, '2026-02-01'),
                    ('room', 'broadcast', 'no', '{}', true, now() at time zone 'UTC' + interval '2 minutes'),
                    ('room', 'broadcast', 'ahead', '{}', true, now() at time zone 'UTC' + interval '50 s'),
                    ('room', 'broadcast', 'empty', null, true, '2026-02-01');
                """)
            try #expect(stage.replay("anon", since: Self.start + 40_000).map(\.event) == ["e40", "ahead"])
        }

        @Test func bytes() throws {
            let stage = try stage(
                "select realtime.send_binary('\\x00ff10', 'b', 'room'); select realtime.send('{\"a\": 1}', 'j', 'room')"
            )
            let lines = try stage.replay("anon", since: Self.start + 1_000_000).map(\.line)
            #expect(lines.first == "b [0, 255, 16]")
            #expect(lines.last?.hasPrefix("j {") == true)
        }

        @Test func notForThoseWhoMayNotReadBroadcasts() throws {
            let stage = try stage(
                "create policy q on realtime.messages to authenticated using (extension = 'presence')")
            try #expect(stage.replay("authenticated", since: 0).isEmpty)
            try #expect(stage.rights("authenticated", to: .read(replay: ReplayRequest(since: 0))) == "presence")
            try #expect(stage.replay("anon", topic: "nothing", since: 0).isEmpty)
        }

        /// Policies must not cut a replay short for the hub itself.
        @Test func aHubThatMayNotReadItAllSaysSo() throws {
            let stage = try stage(
                """
                do $$ begin create role plain_hub login; exception when duplicate_object then null; end $$;
                grant anon to plain_hub; grant usage on schema roost to plain_hub;
                """, user: "plain_hub")
            try #expect(stage.rights("anon") == "broadcast")
            try #expect(stage.rights("anon", to: .read(replay: ReplayRequest(since: 0))) == "replay failed")
            try #expect(stage.rights("anon") == "broadcast", "and goes on")
        }

        @Test(arguments: [true, false]) func onSupabasesTable(_ binary: Bool) throws {
            let database = try PostgresCluster.shared.database()
            try database.createSupabaseRealtime(binary: binary)
            try Migrator.migrate(conninfo: database.conninfo)
            try database.run(
                """
                create policy p on realtime.messages to anon using (true);
                grant select on realtime.messages to anon;
                select realtime.send('{"a": 1}', 'e', 'room', true);
                """)
            let authority = PolicyAuthority(conninfo: database.conninfo, logger: .silent)
            authority.start()
            defer { authority.stop() }
            let found = Notes()
            let right = AuthorizationQuestion.Right.read(replay: ReplayRequest(since: 0))
            authority.decideQuestion(
                AuthorizationQuestion(claims: AuthorityStage.claims("anon"), topic: "room", right: right)
            ) {
                guard case .decided(let rights, let messages) = $0 else { return found.add("undecided") }
                found.add("\(rights.rawValue) \(messages.map(\.line))")
            }
            try eventually("an answer") { !found.all.isEmpty }
            #expect(found.all == [#"3 ["e {\"a\": 1, \"theirs\": true}"]"#])
        }
    }
}

import Administration
import ChangeFeed
import Foundation
import Hub
import Stores
import Testing
import Wire

@testable import PostgresFixtures

extension StoreTests {
    @Suite struct PushAudienceTests {
        private static let statement = PushStore.audienceOfSampleChat
        private static let (ann, bob, cat) = (Database.ann, Database.bob, Database.cat)

        private func message(_ body: String, from sender: String, in room: String = PushStage.room) -> String {
            "insert into messages (conversation_id, sender_id, body) values ('\(room)', '\(sender)', '\(body)');"
        }

        private func registered(_ users: String..., at stage: PushStage) throws -> PushStore {
            let store = try stage.hub()
            for (number, user) in users.enumerated() {
                _ = try store.register(.sample(number + 1), .alert, by: .sample(user))
            }
            return store
        }

        private func heard(_ audience: AlertAudience) -> [String] {
            audience.members.map { "\($0.change) \($0.user.text.suffix(1))" }.sorted()
        }

        @Test func sampleChat() throws {
            let stage = try PushStage.chat()
            let store = try registered(Self.ann, Self.bob, at: stage)
            _ = try store.register(activity: "x", at: .sample(9), about: nil, by: .sample(Self.cat))
            try stage.database.run(
                """
                update conversation_participants set muted = true
                    where user_id = '\(Self.bob)' and conversation_id = '\(PushStage.direct)';
                update conversation_participants set last_read_at = now() - interval '1 minute';
                \(message("old", from: Self.bob, in: PushStage.direct))
                update messages set created_at = now() - interval '1 hour';
                """)
            let changes = try stage.inserts(
                message("one", from: Self.cat) + message("two", from: Self.bob, in: PushStage.direct)
                    + message("three", from: Self.ann, in: PushStage.direct), count: 3)
            let audience = try store.audience(for: changes, statement: Self.statement)
            #expect(heard(audience) == ["0 a", "0 b", "1 a", "2 b"])
            #expect(audience.unanswered.isEmpty && audience.failed == 0)
            let first = try #require(audience.members.first { $0.change == 0 && $0.user.text == Self.ann })
            #expect(
                String(decoding: first.variables, as: UTF8.self).replacing(#/"sent_at": \d+, /#, with: "")
                    == #"{"body": "one", "badge": 2, "muted": false, "unread": 1, "user_id": "\#(Self.ann)", "#
                    + #""sender_id": "\#(Self.cat)", "sender_name": "Cat", "conversation_id": "\#(PushStage.room)", "#
                    + #""conversation_name": "Launch crew"}"#)
            #expect(first.badge == 2 && first.hasDevice && !first.isMuted)
            let muted = try #require(audience.members.first { $0.change == 2 })
            #expect(muted.isMuted && muted.badge == 1, "what is muted does not count")
            #expect(String(decoding: muted.variables, as: UTF8.self).contains(#""conversation_name": "Ann""#))
            let fromAnn = try stage.inserts(message("four", from: Self.ann), count: 1)
            let withCat = try store.audience(for: fromAnn, statement: Self.statement)
            #expect(withCat.members.map(\.hasDevice).filter { !$0 }.count == 1, "an activity is a reason, too")
            #expect(withCat.members.count == 2)
        }

        /// The statement names them, the policies do not let them read.
        @Test func policiesDecide() throws {
            let stage = try PushStage.chat()
            let store = try registered(Self.ann, Self.bob, Self.cat, at: stage)
            let everybody = "select n.row, u.id as user_id from jsonb_to_recordset($1) n (row int), users u"
            let changes = try stage.inserts(
                message("one", from: Self.cat) + message("two", from: Self.ann, in: PushStage.direct), count: 2)
            #expect(
                heard(try store.audience(for: changes, statement: everybody + ";\n")) == [
                    "0 a", "0 b", "0 c", "1 a", "1 b",
                ])
            try stage.database.run("create policy not_bob on messages as restrictive for select using (false)")
            try eventually("the store hears of the policy") {
                try store.audience(for: changes, statement: everybody).members.isEmpty
            }
            try stage.database.run("alter table messages disable row level security")
            #expect(try stage.hub().audience(for: changes, statement: everybody).members.count == 6)
            try stage.database.run(
                "revoke select on messages from authenticated; grant select (id) on messages to anon")
            #expect(try stage.hub().audience(for: changes, statement: everybody).members.isEmpty)
            let body =
                "select n.row, u.id as user_id, 'x' as body, 'y' as id, 'z' as other from users u, "
                + "jsonb_to_recordset($1) n (row int)"
            _ = try store.register(.sample(1), .alert, by: .sample(Self.ann, role: "anon"))
            let seen = try stage.hub().audience(for: changes, statement: body).members
            #expect(seen.map(\.user.text) == [Self.ann, Self.ann])
            let keys = try JSONSerialization.jsonObject(with: Data(seen[0].variables)) as? [String: String]
            #expect(keys.map { Set($0.keys) } == ["user_id", "id", "other"], "not what the role may not read")
        }

        @Test func newestClaimsCount() throws {
            let stage = try PushStage.chat()
            try stage.database.run(
                """
                drop policy members on messages;
                create policy by_claim on messages for select to authenticated using (
                    current_setting('request.jwt.claims', true)::jsonb ->> 'level' = 'gold');
                create policy service on messages for select to anon using (false);
                """)
            let store = try stage.hub()
            let changes = try stage.inserts(message("one", from: Self.cat), count: 1)
            func members() throws -> Int { try store.audience(for: changes, statement: Self.statement).members.count }
            _ = try store.register(.sample(1), .alert, by: .sample(Self.ann, session: "1", more: #","level":"gold""#))
            #expect(try members() == 1)
            _ = try store.register(.sample(2), .alert, by: .sample(Self.ann, session: "2", more: #","level":"tin""#))
            #expect(try members() == 0)
            _ = try store.register(
                activity: "x", at: .sample(3), about: nil, by: .sample(Self.ann, more: #","level":"gold""#))
            #expect(try members() == 1)
            _ = try store.register(.sample(2), .alert, by: .sample(Self.ann, role: "anon", more: #","level":"gold""#))
            #expect(try members() == 0)
            _ = try store.register(.sample(2), .alert, by: .sample(Self.ann, role: "nobody_at_all"))
            #expect(try members() == 0)
        }

        @Test func statementThatFailsIsOneComplaint() throws {
            let stage = try PushStage.chat()
            let store = try registered(Self.ann, at: stage)
            let changes = try stage.inserts(message("1", from: Self.cat) + message("x", from: Self.cat), count: 2)
            for broken in [
                "select 1", "selec", "select 1 as row, 'x' as user_id from nowhere where $1::jsonb is null",
                "select 1 as row, '\(Self.ann)' as user_id) x; drop table messages; select (1",
            ] {
                let audience = try store.audience(for: changes, statement: broken)
                #expect(audience.members.isEmpty && audience.failed == 2 && audience.unanswered.isEmpty)
            }
            #expect(stage.notes.all.count == 4, "\(stage.notes.all)")
            _ = try store.audience(for: changes, statement: "select 1")
            #expect(stage.notes.all.count == 4, "\(stage.notes.all)")
            #expect(stage.notes.all.allSatisfy { $0.contains("alerts.audience fails, so nobody is alerted") })
            let picky = """
                select n.row, '\(Self.ann)' as user_id, (n.record ->> 'body')::int as number
                from jsonb_to_recordset($1) n (row int, record jsonb) -- the end
                """
            let some = try store.audience(for: changes, statement: picky)
            #expect(some.members.map(\.change) == [0] && some.failed == 1)
            #expect(stage.notes.all.last?.contains("fails for some rows of public.messages") ?? false)
            #expect(stage.notes.all.last?.contains("invalid") == false, "Postgres quotes the row")
        }

        @Test func statementNeitherWritesNorHangs() throws {
            let stage = try PushStage.chat()
            let store = try registered(Self.ann, at: stage)
            let changes = try stage.inserts(message("1", from: Self.cat), count: 1)
            try stage.database.run(
                """
                create function scribble() returns text language plpgsql as
                    $$ begin insert into users values (gen_random_uuid(), 'x'); return '\(Self.ann)'; end $$
                """)
            let writing = "select n.row, scribble() as user_id from jsonb_to_recordset($1) n (row int)"
            #expect(try store.audience(for: changes, statement: writing).failed == 1)
            #expect(try stage.lines("select count(*) from users") == ["3"])
            let blocker = try stage.database.session()
            try blocker.runScript("begin; lock table users")
            let blocked = try store.audience(for: changes, statement: Self.statement)
            #expect(blocked.unanswered == [0] && blocked.failed == 0 && blocked.members.isEmpty)
            try blocker.runScript("rollback")
            #expect(try store.audience(for: changes, statement: Self.statement).members.count == 1)
            #expect(!store.isBroken)
        }

        @Test(
            "one message that the statement waits for, or fails on as if it did, keeps no other",
            arguments: ["raise exception 'not now' using errcode = '40001'", "perform from held"])
        func statementThatWaitsForOneRow(harm: String) throws {
            let stage = try PushStage.chat()
            let store = try registered(Self.ann, at: stage)
            try stage.database.run(
                """
                create table held (x int);
                create function heard_by(body text) returns text language plpgsql as
                    $$ begin if body = 'poison' then \(harm); end if; return '\(Self.ann)'; end $$
                """)
            let blocker = try stage.database.session()
            try blocker.runScript("begin; lock table held")
            let changes = try stage.inserts(
                ["poison", "1", "2", "3"].map { message($0, from: Self.cat) }.joined(), count: 4)
            let statement =
                "select n.row, heard_by(n.record ->> 'body') as user_id from jsonb_to_recordset($1) n (row int, record jsonb)"
            let audience = try store.audience(for: changes, statement: statement)
            let poison = try #require(
                changes.firstIndex { change in
                    change.record.map { String(decoding: $0, as: UTF8.self).contains("poison") } ?? false
                })
            #expect(audience.unanswered == [poison] && audience.failed == 0)
            #expect(audience.members.map(\.change) == changes.indices.filter { $0 != poison })
            #expect(!store.isBroken)
        }

        @Test(
            "a member for whom a policy waits for a lock is asked for again, and one for whom it fails is not; the others are told",
            arguments: [true, false])
        func policiesThatWait(isLock: Bool) throws {
            let stage = try PushStage.chat()
            let store = try registered(Self.ann, Self.bob, at: stage)
            let harm = isLock ? "perform from held" : "raise exception 'not now' using errcode = '40001'"
            try stage.database.run(
                """
                create table held (x int); grant select on held to authenticated;
                create function waits() returns boolean language plpgsql as $$ begin \(harm); return true; end $$;
                create policy waits on messages as restrictive for select to authenticated using (
                    case when current_setting('request.jwt.claims')::json ->> 'sub' = '\(Self.bob)' then waits() else true end)
                """)
            let blocker = try stage.database.session()
            try blocker.runScript("begin; lock table held")
            let changes = try stage.inserts(message("1", from: Self.cat), count: 1)
            let audience = try store.audience(for: changes, statement: Self.statement)
            #expect(audience.members.map(\.user) == [Name(Self.ann)])
            #expect(audience.unanswered == (isLock ? [0] : []))
            try blocker.runScript("rollback")
            guard isLock else { return }
            try eventually("both") {
                let audience = try store.audience(for: changes, statement: Self.statement)
                return audience.members.count == 2 && audience.unanswered.isEmpty
            }
        }

        /// A user who has no phone is asked about in vain, and costs an index each.
        @Test func onlyWhoeverIsRegistered() throws {
            let stage = try PushStage.chat()
            let store = try registered(Self.ann, at: stage)
            _ = try store.register(activity: "x", at: .sample(9), about: nil, by: .sample(Self.bob))
            try store.end(activities: ["x"])
            let changes = try stage.inserts(message("1", from: Self.cat) + "delete from messages;", count: 2)
            let twice =
                "select n.row, u.id::text as user_id from users u, jsonb_to_recordset($1) n (row int), (values (1), (2)) v"
                + " union all select 7, '\(Self.ann)' union all select null, '\(Self.ann)'"
            #expect(heard(try store.audience(for: changes, statement: twice)) == ["0 a"])
        }

        @Test func factsAreWhatTheUserSees() throws {
            let stage = try PushStage.chat()
            let store = try stage.hub()
            try stage.database.run(
                message("one", from: Self.bob)
                    + "grant select on users, conversations, conversation_participants to authenticated")
            for (id, user) in [("x", Self.ann), ("y", "00000000-0000-4000-8000-00000000000d")] {
                _ = try store.register(
                    activity: Name(id), at: .sample(1), about: Name(PushStage.room), by: .sample(user))
            }
            func row(_ answer: FactsAnswer) -> [UInt8]? { if case .row(let bytes) = answer { bytes } else { nil } }
            let facts = try #require(row(try store.facts(of: "x", statement: PushStore.factsOfSampleChat)))
            let object = try #require(try JSONSerialization.jsonObject(with: Data(facts)) as? [String: Any])
            #expect(try store.facts(of: "y", statement: PushStore.factsOfSampleChat) == .noRow)
            #expect(object["body"] as? String == "one" && object["unread"] as? Int == 1)
            #expect(object["conversation_name"] as? String == "Launch crew")
            let count = "select count(*) as n from messages where $1::text <> '' and $2::text <> ''"
            func seen(_ id: String) throws -> String? {
                row(try store.facts(of: Name(id), statement: count)).map { String(decoding: $0, as: UTF8.self) }
            }
            #expect(try seen("x") == #"{"n": 1}"#)
            #expect(try seen("y") == #"{"n": 0}"#, "the policies decide")
            #expect(try store.facts(of: "unknown", statement: count) == .unknown)
            #expect(try store.facts(of: "x", statement: "select 1") == .unknown)
            #expect(stage.notes.all.count == 1)
            #expect(try seen("x") == #"{"n": 1}"#, "the session is the hub's own again")
        }

        @Test func doctorLooks() throws {
            let stage = try PushStage.chat()
            func findings(_ statement: String, _ database: Database) -> [String] {
                Doctor.examine(audience: statement, tables: ["messages", "public.users"], conninfo: database.conninfo)
                    .map { "\($0.severity.rawValue) \($0.message)" }
            }
            let good = findings(Self.statement, stage.database)
            #expect(good.first == "good alerts.audience fits the database.")
            #expect(good.last?.contains("public.users is not watched") ?? false && good.count == 2)
            #expect(
                findings("select 1", stage.database).first?.hasPrefix("error alerts.audience does not work") ?? false)
            try stage.database.run(
                "do $$ begin create role alerting login; exception when duplicate_object then null; end $$;"
                    + "grant select on users, conversations, conversation_participants, messages to alerting;"
                    + "grant usage on schema roost to alerting; grant select on roost.push_user, roost.push_device to alerting"
            )
            #expect(
                findings(Self.statement, stage.database.role("alerting")).first?.hasPrefix("warning Row level security")
                    ?? false)
        }
    }
}

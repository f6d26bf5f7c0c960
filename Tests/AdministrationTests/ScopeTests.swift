import Administration
import ChangeFeed
import Testing

@testable import PostgresFixtures

extension Database {
    /// A chat as small as a scope needs it: messages that the participants of their conversation see.
    func preparedForScopes() throws -> Database {
        try createClientRoles()
        return try prepared(
            """
            create table participants (
                conversation_id int, user_id uuid, until timestamptz, primary key (conversation_id, user_id));
            create table blocks (who uuid);
            create table messages (id int primary key, sender_id uuid, conversation_id int, "Odd, Name" int);
            alter table messages enable row level security;
            create policy members on messages for all
                using (conversation_id in (select p.conversation_id from participants p where p.user_id = auth.uid()))
                with check (sender_id = auth.uid() and exists (select from blocks));
            create policy write on messages for insert with check (sender_id = auth.uid());
            grant select on messages, participants to authenticated;
            insert into participants values
                (1, '00000000-0000-0000-0000-00000000000a'), (1, '00000000-0000-0000-0000-00000000000b'),
                (2, '00000000-0000-0000-0000-00000000000b');
            insert into messages
                select n, '00000000-0000-0000-0000-00000000000a', n % 2 + 1 from generate_series(1, 20) n;
            """)
    }

    func declareScope(
        _ table: String = "messages", _ column: String = "conversation_id", _ members: String...
    ) throws -> Watcher.Outcome {
        try Watcher.watch(
            table, scope: .declare(column: column, members: members.isEmpty ? ["participants"] : members),
            conninfo: conninfo)
    }

    func scopes() throws -> [[String?]] {
        try session().queryRows("select relid, scope_column, members from roost.scope order by 1::text")
    }
}

extension CommandTests {
    /// `roost watch --scope` and `--no-scope`, and `roost unwatch` of what scopes rest on.
    @Suite struct ScopeTests {
        let database: Database

        init() throws { database = try PostgresCluster.shared.migratedDatabase().preparedForScopes() }

        @Test func declares() throws {
            let outcome = try database.declareScope()
            #expect(outcome.changed == ["messages"] && outcome.members.map(\.changed) == [["participants"]])
            #expect(outcome.scope?.column == "conversation_id" && outcome.scope?.members == "public.participants")
            #expect(outcome.scope?.problems.isEmpty ?? false)
            #expect(outcome.scope?.hasRowSecurity ?? false)
            #expect(try database.scopes() == [["messages", "conversation_id", "{participants}"]])
            try database.run("truncate participants; insert into participants values (1, gen_random_uuid())")
            #expect(try database.outbox() == ["T participants", "I participants"])
        }

        @Test func staysIsReplacedAndRemoved() throws {
            _ = try database.declareScope()
            let again = try Watcher.watch("messages", conninfo: database.conninfo)
            #expect(again.changed.isEmpty && again.scope?.column == "conversation_id")
            try database.run("alter policy members on messages using (\"Odd, Name\" > 0)")
            _ = try database.declareScope("messages", "\"Odd, Name\"", "blocks", "blocks")
            #expect(try database.scopes() == [["messages", "Odd, Name", "{blocks}"]])
            let removed = try Watcher.watch("messages", scope: .remove, conninfo: database.conninfo)
            #expect(removed.scope == nil && removed.changed.isEmpty)
            #expect(try database.scopes().isEmpty)
        }

        @Test func unwatchForgetsAndRefuses() throws {
            _ = try database.declareScope()
            #expect { try Watcher.unwatch("participants", conninfo: database.conninfo) } throws: {
                "\($0)" == "The scope of messages rests on public.participants, which therefore stays watched; run "
                    + "`roost watch messages --no-scope` first."
            }
            let watched = "select count(*) from pg_trigger where tgname like 'roost\\_%' and tgrelid = $1::regclass"
            #expect(try database.value(watched, ["participants"]) == "4")
            try Watcher.unwatch("messages", conninfo: database.conninfo)
            #expect(try database.value(watched, ["messages"]) == "0")
            #expect(try database.scopes().isEmpty)
            try Watcher.unwatch("participants", conninfo: database.conninfo)
            #expect(try database.value(watched, ["participants"]) == "0")
        }

        @Test(arguments: [
            ("messages", "nothing", "participants", "has no column nothing"),
            ("messages", "a b", "participants", "is not a column's name"),
            ("messages", "conversation_id", "nowhere", "There is no table nowhere"),
            ("messages", "conversation_id", "pg_class", "system table"),
            ("nowhere", "conversation_id", "participants", "There is no table nowhere"),
            ("messages", "sender_id", "participants", "the policy members of messages also reads conversation_id"),
            ("messages", "conversation_id", "blocks", "visibility also rests on participants"),
        ])
        func refusals(table: String, column: String, members: String, reason: String) throws {
            #expect { try database.declareScope(table, column, members) } throws: { "\($0)".contains(reason) }
            #expect(try database.scopes().isEmpty)
            // Nothing is half done.
            #expect(
                try database.value("select count(*) from pg_trigger where tgfoid = 'roost.on_insert()'::regprocedure")
                    == "0")
        }

        /// What the policies may be, and what is said of the scope conversation_id with the members participants.
        @Test(arguments: [
            ("alter policy members on messages using (sender_id = auth.uid())", "also reads sender_id"),
            ("alter policy members on messages using (is_it(messages))", "reads whole rows or system columns"),
            ("alter policy members on messages using (ctid is not null)", "reads whole rows or system columns"),
            (
                "alter policy members on messages using (exists (select from participants p where p.conversation_id = "
                    + "messages.conversation_id and exists (select from participants q where q.user_id = sender_id)))",
                "also reads sender_id"
            ),
            (
                "alter policy members on messages using (exists (select from messages m where m.id = 1))",
                "reads that table itself"
            ),
            ("alter policy members on messages using (now() > '2026-01-01')", "depends on the time or on chance"),
            ("alter policy members on messages using (random() > 0.5)", "depends on the time or on chance"),
            (
                """
                alter table participants enable row level security;
                create policy own on participants using (until > current_timestamp)
                """, "the policy own of participants depends on the time"
            ),
            (
                """
                alter table participants enable row level security;
                create policy own on participants using (user_id in (select who from blocks))
                """, "visibility also rests on blocks"
            ),
            (
                """
                create view blocked as select * from blocks;
                create policy more on messages as restrictive for select using (not exists (select from blocked))
                """, "visibility also rests on blocks"
            ),
            (
                """
                create table old_participants () inherits (participants);
                """, "visibility also rests on old_participants"
            ),
            (
                "alter policy members on messages using (exists (select from pg_roles))",
                "visibility also rests on pg_authid"
            ),
            ("alter table messages drop column conversation_id cascade", "the column conversation_id is gone"),
            ("drop trigger roost_truncate on participants", "public.participants is not watched, or not wholly"),
            (
                "alter table participants disable trigger roost_update",
                "public.participants is not watched, or not wholly"
            ),
            ("drop table participants cascade", "the members table with the oid"),
        ])
        func problems(change: String, problem: String) throws {
            try database.run(
                "create function is_it(messages) returns bool language plpgsql stable as $$ begin return true; end $$")
            _ = try database.declareScope()
            try database.run(change)
            let found = try Watcher.watch("messages", conninfo: database.conninfo).scope?.problems ?? []
            #expect(found.contains { $0.contains(problem) }, "\(found)")
            let complaints = Doctor.examineDatabase(conninfo: database.conninfo).filter { $0.subject == "scope" }
            #expect(complaints.contains { $0.severity == .warning && $0.message.contains(problem) }, "\(complaints)")
        }

        @Test(arguments: [
            "select 1",
            "alter policy members on messages using (conversation_id = any (array(select conversation_id from participants)))",
            """
            alter policy members on messages using (exists (
                select from participants p join participants q using (conversation_id)
                where p.conversation_id = messages.conversation_id and exists (select from participants where q.until is null)))
            """,
            """
            create view mine as select p.* from participants p where p.user_id = auth.uid();
            alter policy members on messages using (conversation_id in (select conversation_id from mine))
            """,
            """
            alter table participants enable row level security;
            create policy own on participants using (user_id = auth.uid() and user_id is not null)
            """,
            """
            create policy odd on messages for update using (id = 1 and "Odd, Name" = 2);
            create policy "{VAR :varno 1 :varattno 2 " on messages for select using (conversation_id > 0 or '{}{' = '}')
            """,
        ])
        func policiesThatKeepToTheScope(change: String) throws {
            try database.run(change)
            #expect(try database.declareScope().scope?.problems == [])
        }

        @Test func membersOfPartitionsAreTheirRoots() throws {
            try database.run(
                """
                create table guests (conversation_id int, user_id uuid) partition by range (conversation_id);
                create table guests_low partition of guests for values from (0) to (100);
                alter policy members on messages using (conversation_id in (select conversation_id from guests_low))
                """)
            #expect { try database.declareScope("messages", "conversation_id", "guests_low") } throws: {
                "\($0)".contains("is a partition of public.guests")
            }
            #expect(try database.declareScope("messages", "conversation_id", "guests").scope?.problems == [])
            try database.run("truncate guests_low")
            #expect(try database.outbox() == ["T guests"])
            try database.run("create table guests_high partition of guests for values from (100) to (200)")
            let problems = try Watcher.watch("messages", conninfo: database.conninfo).scope?.problems
            #expect(problems == ["public.guests is not watched, or not wholly"])
        }

        @Test func withoutRowSecurityItChangesNothing() throws {
            try database.run("alter table messages disable row level security")
            let outcome = try database.declareScope("messages", "conversation_id", "messages")
            #expect(outcome.scope?.hasRowSecurity == false && outcome.scope?.problems == [])
            #expect(outcome.members.isEmpty)
        }

        @Test func dumpNamesTables() throws {
            _ = try database.declareScope()
            #expect(
                try database.value("select format('%s %s', relid, members) from roost.scope")
                    == "messages {participants}")
        }

        @Test(arguments: [
            (["a,b", "c"], ["a", "b", "c"]), ([" s.a , b "], ["s.a", "b"]), (["\"A,b\",c"], ["\"A,b\"", "c"]),
            ([",", ""], []), ([], []),
        ])
        func listsOfTables(lists: [String], names: [String]) {
            #expect(ScopeChange.splitNames(in: lists) == names)
        }
    }
}

import Administration
import ChangeFeed
import Postgres
import Testing

@testable import PostgresFixtures

extension CommandTests {
    @Suite struct WatchTests {
        let database: Database

        init() throws {
            database = try PostgresCluster.shared.migratedDatabase().prepared(
                #"""
                create table messages (id int);
                create schema "Odd Schema";
                create table "Odd Schema"."Mixed ""Case""" (id int);
                create view a_view as select 1 as id;
                create table tree (id int) partition by range (id);
                create table tree_low partition of tree for values from (0) to (10);
                create table tree_high partition of tree for values from (10) to (20) partition by range (id);
                create table tree_high_1 partition of tree_high for values from (10) to (20);
                create publication chat for table messages, tree;
                create publication empty;
                """#)
        }

        func watch(_ table: String) throws -> Watcher.Outcome { try Watcher.watch(table, conninfo: database.conninfo) }

        @Test(
            "a table that inherits, or is inherited from, is refused by triggers, and one that comes to be is an error")
        func inheritance() throws {
            try database.run(
                """
                create table parent (id int primary key); create table child (primary key (id)) inherits (parent);
                create table later (id int primary key)
                """)
            for table in ["parent", "child"] {
                #expect { try watch(table) } throws: {
                    "\($0)".contains("public.parent") && "\($0)".contains("public.child")
                }
            }
            #expect(try database.value("select count(*) from roost.watched") == "0")
            _ = try watch("later")
            try database.run("create table heir () inherits (later)")
            let found = Doctor.examineDatabase(conninfo: database.conninfo).filter { $0.message.contains("inherits") }
            #expect(
                found.count == 1 && found.first?.severity == .error
                    && found.first?.message.contains("public.later") == true)
        }

        @Test func namesAsRegclassReadsThem() throws {
            let outcome = try watch("messages")
            #expect(outcome.table == "public.messages" && outcome.changed.count == 1)
            #expect(try watch("public.messages").changed.isEmpty)
            #expect(
                try watch(#""Odd Schema"."Mixed ""Case""""#).table == #""Odd Schema"."Mixed ""Case""""#)
            #expect(try watch("tree").changed.count == 4)
            #expect(try Watcher.unwatch("tree", conninfo: database.conninfo).changed.count == 4)
            #expect(try Watcher.unwatch("tree", conninfo: database.conninfo).changed.isEmpty)
        }

        @Test(arguments: [
            ("a_view", "is a view"), ("nowhere", "There is no table"), ("pg_class", "system table"),
            ("chat.Messages", "did you mean public.messages"),
            (#""mixed ""case""""#, #"did you mean '"Odd Schema"."Mixed ""Case"""'?"#),
            ("tree_high_1", "is a partition of public.tree"), ("roost.change", "system table"),
            ("a b c", "not a table's name"),
            ("", "not a table's name"),
        ])
        func refusals(table: String, reason: String) {
            #expect { try watch(table) } throws: { "\($0)".contains(reason) }
        }

        @Test func publications() throws {
            let outcome = try Watcher.watch(publication: "chat", conninfo: database.conninfo)
            #expect(outcome.map(\.table) == ["public.messages", "public.tree"])
            #expect { try Watcher.watch(publication: "empty", conninfo: database.conninfo) } throws: {
                "\($0)".contains("has no tables")
            }
            #expect { try Watcher.watch(publication: "nix", conninfo: database.conninfo) } throws: {
                "\($0)".contains("There is no publication")
            }
        }

        @Test func unmigratedDatabase() throws {
            let bare = try PostgresCluster.shared.database()
            #expect { try Watcher.watch("t", conninfo: bare.conninfo) } throws: { "\($0)".contains("roost migrate") }
        }

        @Test func strangersCannotAttachTheTriggers() throws {
            try database.run(
                "do $$ begin create role stranger login; exception when duplicate_object then null; end $$")
            try database.run("create schema s authorization stranger")
            let stranger = Database(conninfo: database.conninfo.replacing("user=postgres", with: "user=stranger"))
            try stranger.run("create table s.t (id int)")
            #expect(throws: PostgresError.self) {
                try stranger.run(
                    """
                    create trigger x after insert on s.t referencing new table as roost_new
                    for each statement execute function roost.on_insert()
                    """)
            }
        }

        @Test func busyTableIsWaitedForInShortTurns() throws {
            let database = database
            let waiting =
                "select from pg_locks where granted = $1::bool and mode = $2 and relation = 'messages'::regclass"
            try concurrently(2) { index in
                let session = try database.session()
                if index == 0 {
                    try session.runScript("begin; insert into messages values (1)")
                    try eventually("somebody wants the table") {
                        try !session.queryRows(waiting, ["false", "ShareRowExclusiveLock"]).isEmpty
                    }
                    try session.runScript("commit")
                } else {
                    try eventually("the table is in use") {
                        try !session.queryRows(waiting, ["true", "RowExclusiveLock"]).isEmpty
                    }
                    try Watcher.watch("messages", conninfo: database.conninfo)
                }
            }
            #expect(try watch("messages").changed.isEmpty)
        }
    }
}

import Capture
import Postgres
import Testing

@testable import PostgresFixtures

extension CaptureTests {
    /// One row never keeps the others.
    @Suite struct RowsWithoutJSONTests {
        @Test("whatever error a value's JSON ends with, it is a text, and the others are what they were")
        func texts() throws {
            let notes = Notes()
            let stage = try CaptureStage(
                """
                \(TypeWithoutJSON.sql)
                create table t (id int primary key, s state, n int, twice int generated always as (n * 2) stored);
                create table other (id int primary key)
                """, reading: "t", "other")
            let states = TypeWithoutJSON.states + ["57014"]
            try stage.capturing(notes: notes) { capture in
                for (id, state) in states.enumerated() {
                    try stage.database.run(
                        """
                        insert into t values (\(id), 'fine', \(id)); update t set s = '\(state)' where id = \(id);
                        insert into t values (\(id + 100), 'fine', 1); delete from t where id = \(id);
                        insert into other values (\(id))
                        """)
                }
                let rows = try stage.stored(states.count * 4).map { $0.record ?? $0.old ?? "" }
                for (id, state) in states.enumerated() {
                    #expect(rows[id * 4] == #"{"id":\#(id),"s":"fine","n":\#(id),"twice":\#(id * 2)}"#)
                    #expect(rows[id * 4 + 1].hasPrefix(#"{"id":\#(id),"s":"\#(state)","n":\#(id)"#))
                    #expect(rows[id * 4 + 2] == #"{"id":\#(id + 100),"s":"fine","n":1,"twice":2}"#)
                }
                let others = try stage.stored(states.count, of: "other")
                #expect(others.count == states.count)
                try eventually("a count") { capture.current.rowsAsTexts == states.count }
                #expect(capture.current.rowsLost == 0)
            }
            let said = notes.all.filter { $0.contains("cannot be written as JSON") }
            #expect(said.count == 1, "once a minute")
            #expect(said.first?.contains("public.t") == true && said.first?.contains("id = 0") == true)
        }

        @Test("of a batch most of whose rows have no JSON, the others have theirs")
        func many() throws {
            let stage = try CaptureStage(
                "\(TypeWithoutJSON.sql) create table t (id int primary key, s state)", reading: "t")
            try stage.capturing { capture in
                try stage.database.run(
                    """
                    insert into t select n, case when n % 3 = 0 then 'fine' else 'P0001' end::state
                    from generate_series(1, 3000) n
                    """)
                let rows = try stage.stored(3_000)
                #expect(
                    rows.map(\.record)
                        == (1...3_000).map {
                            #"{"id":\#($0),"s":"\#($0 % 3 == 0 ? "fine" : "P0001")"}"#
                        })
            }
        }

        @Test("a row whose JSON ends the session that makes it is stored without running anything of its types")
        func session() throws {
            let notes = Notes()
            let stage = try CaptureStage(
                """
                \(TypeWithoutJSON.sql) create table t (id int primary key, s state);
                create table other (id int primary key)
                """, reading: "t", "other")
            try stage.capturing(notes: notes) { _ in
                try stage.database.run(
                    """
                    insert into t select n, case when n = 5 then 'ends' else 'fine' end::state from generate_series(1, 9) n;
                    insert into other values (1)
                    """)
                let rows = try stage.stored(9)
                #expect(
                    rows.map(\.record)
                        == (1...9).map {
                            $0 == 5 ? #"{"id":"5","s":"ends"}"# : #"{"id":\#($0),"s":"fine"}"#
                        })
                let others = try stage.stored(1, of: "other")
                #expect(others.count == 1)
            }
        }

        @Test("a transaction that Postgres cannot decode again and again is passed, and clients are told")
        func undecodable() throws {
            let notes = Notes()
            let stage = try CaptureStage(
                """
                create type odd;
                create function odd_in(cstring) returns odd language internal immutable strict as 'int4in';
                create function odd_out(odd) returns cstring language internal immutable strict as 'trigger_out';
                create type odd (input = odd_in, output = odd_out, internallength = 4, passedbyvalue, alignment = int4);
                create table t (id int primary key, x odd);
                create table other (id int primary key)
                """, reading: "t", "other")
            try stage.capturing(notes: notes) { capture in
                try stage.database.run("insert into other values (1)")
                try stage.database.run("insert into t values (1, null), (2, '5'); insert into other values (2)")
                try stage.database.run("insert into other values (3)")
                let rows = try stage.stored(2, of: "other")
                #expect(rows.map(\.record) == [#"{"id":1}"#, #"{"id":3}"#])
                #expect(try stage.stored(1).map(\.record) == [#"{"id":1,"x":null}"#], "what came before it")
                let noted = try stage.database.session().queryRows("select count(*) from roost.change where op = 'X'")
                #expect(noted.first == ["1"])
                try stage.settle()
            }
            #expect(
                notes.all.contains { $0.contains("cannot decode a transaction") && $0.contains("cannot display") },
                "\(notes.all)")
        }

        @Test("where it is not known which transaction cannot be decoded, the slot is made anew, and clients are told")
        func undecodableBeforeItBegins() throws {
            let notes = Notes()
            let stage = try CaptureStage("create table t (id int primary key, n int)", reading: "t")
            if try stage.database.serverVersion() < 150_000 { return }
            try stage.database.run("alter publication roost set table t where (10 / id > 0)")
            try stage.capturing(notes: notes) { capture in
                try stage.database.run("insert into t values (1, 1)")
                _ = try stage.stored(1)
                try stage.database.run("insert into t values (0, 1)")
                try eventually("another slot: \(notes.all)") { notes.all.contains { $0.contains("are missing") } }
                try stage.database.run("insert into t values (2, 1)")
                #expect(try stage.stored(2).map(\.record).last == #"{"id":2,"n":1}"#)
            }
        }

        @Test(
            "an error about the server and not about a change passes nothing",
            arguments: [
                ("53100", false), ("57P03", false), ("58030", false), ("42501", false), ("XX001", false),
                ("22012", true),
                ("P0001", true), ("XX000", true), ("0A000", true), ("42883", true),
            ])
        func errorsOfTheServer(state: String, mayBeOfChange: Bool) {
            let refusal = DecodingRefusal(
                error: PostgresError(.server, sqlState: state, "no"), commit: nil,
                position: CapturePosition(lsn: LSN(1)))
            #expect(refusal.mayBeOfChange == mayBeOfChange)
        }

        @Test("what cannot be stored at all is passed, and something says so in its place")
        func lost() throws {
            let notes = Notes()
            let stage = try CaptureStage("create table t (id int primary key, x text)", reading: "t")
            // As if something were wrong with the row that no care helps against.
            try stage.database.run(
                "alter table roost.change add check (record::text not like '%poison%' and old_record::text not like '%poison%')"
            )
            try stage.capturing(notes: notes) { capture in
                try stage.database.run("insert into t values (1, 'a'), (2, 'poison'), (3, 'c')")
                let rows = try stage.stored(3)
                #expect(rows.map(\.operation) == ["I", "L", "I"])
                #expect(rows.map(\.record) == [#"{"id":1,"x":"a"}"#, nil, #"{"id":3,"x":"c"}"#])
                try eventually("a count") { capture.current.rowsLost == 1 }
            }
            #expect(notes.all.contains { $0.contains("reach nobody") && $0.contains("id = 2") })
        }

        @Test(
            "a row that is refused for a reason that may pass is passed where it does not",
            arguments: ["40001", "55P03", "53100", "25006", "28000"])
        func refused(state: String) throws {
            let notes = Notes()
            let stage = try CaptureStage(
                "create table t (id int primary key, x text); create table other (id int primary key)",
                reading: "t", "other")
            try stage.database.run(Self.refusing("new.record::text like '%poison%'", with: state))
            try stage.capturing(notes: notes) { capture in
                try stage.database.run(
                    "insert into t values (1, 'a'), (2, 'poison'), (3, 'c'); insert into other values (1)")
                let rows = try stage.stored(3)
                #expect(rows.map(\.record) == [#"{"id":1,"x":"a"}"#, nil, #"{"id":3,"x":"c"}"#])
                #expect(rows.map(\.operation) == ["I", "L", "I"])
                let others = try stage.stored(1, of: "other")
                #expect(others.count == 1)
                // The next is not waited for as long.
                try stage.database.run("insert into t values (4, 'poison'), (5, 'e')")
                let more = try stage.stored(5)
                #expect(more.suffix(2).map(\.operation) == ["L", "I"])
                try eventually("a count") { capture.current.rowsLost == 2 }
            }
            #expect(notes.all.contains { $0.contains("reach nobody") && $0.contains("id = 2") })
            #expect(notes.all.count { $0.contains("problem: changes are not read") } >= 3)
        }

        @Test(
            "a disk that is full, or a server that takes no writes, passes nothing for however long",
            arguments: ["53100", "25006"])
        func room(state: String) throws {
            let notes = Notes()
            let stage = try CaptureStage("create table t (id int primary key)", reading: "t")
            try stage.database.run(Self.refusing("true", with: state))
            try stage.capturing(notes: notes) { capture in
                try stage.database.run("insert into t values (1)")
                try eventually("many attempts", within: .seconds(30)) {
                    notes.all.count { $0.contains("problem: changes are not read") } >= 12
                }
                #expect(capture.current.rowsLost == 0 && capture.current.waitingSince != nil)
                try stage.database.run("drop trigger refuses on roost.change")
                let rows = try stage.stored(1)
                #expect(rows.map(\.record) == [#"{"id":1}"#])
                try eventually("nothing to wait") { capture.current.waitingSince == nil }
            }
        }

        private static func refusing(_ condition: String, with state: String) -> String {
            """
            create function refuses() returns trigger language plpgsql as
                $$ begin raise exception 'not now' using errcode = '\(state)'; end $$;
            create trigger refuses before insert on roost.change for each row when (\(condition)) execute function refuses()
            """
        }

        @Test("where nothing can be stored, nothing is passed")
        func nothing() throws {
            let notes = Notes()
            let stage = try CaptureStage("create table t (id int primary key)", reading: "t")
            try stage.database.run("alter table roost.change add constraint none check (false) not valid")
            try stage.capturing(notes: notes) { capture in
                try stage.database.run("insert into t values (1)")
                try eventually("a word") { notes.all.contains { $0.contains("problem: changes are not read") } }
                let since = capture.current.waitingSince
                #expect(since != nil)
                let said = notes.all.count
                try eventually("another session") { notes.all.count > said }
                #expect(capture.current.waitingSince == since, "over sessions")
            }
            try stage.database.run("alter table roost.change drop constraint none")
            try stage.capturing { capture in
                let rows = try stage.stored(1)
                #expect(rows.map(\.record) == [#"{"id":1}"#])
                try eventually("nothing to wait") { capture.current.waitingSince == nil }
            }
        }
    }
}

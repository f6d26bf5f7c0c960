import Capture
import Testing

@testable import PostgresFixtures

extension CaptureTests {
    /// A row that is read from the WAL is, to the byte, what a trigger would have written.
    @Suite struct SameRowTests {
        /// Runs the same statements on two tables, and compares what became of them.
        ///
        /// - Parameters:
        ///   - isSlow: each is stored before the next one.
        ///   - statements: with `{t}` for the table.
        private func compare(
            _ columns: String, before: String = "select 1", identity: String = "full", isSlow: Bool = false,
            _ statements: [String],
            sourceLocation: SourceLocation = #_sourceLocation
        ) throws {
            let stage = try CaptureStage(
                """
                \(before);
                create table t (\(columns)); create table u (\(columns)); alter table t replica identity \(identity)
                """, reading: "t", triggers: "u")
            try stage.capturing { _ in
                let session = try stage.database.session()
                for statement in statements {
                    for table in ["t", "u"] { try session.runScript(statement.replacing("{t}", with: table)) }
                    if isSlow { try stage.settle() }
                }
                try stage.settle()
                let wanted = try stage.database.session().queryRows(
                    """
                    select op, record, old_record, reduced, row_text, old_row_text
                    from roost.change where relid = 'u'::regclass order by id
                    """)
                let found = try stage.stored(wanted.count)
                for (row, want) in zip(found, wanted) {
                    #expect(row.operation == want[0], sourceLocation: sourceLocation)
                    #expect(row.record == want[1], sourceLocation: sourceLocation)
                    #expect(row.isReduced == (want[3] == "t"), sourceLocation: sourceLocation)
                    if identity == "full" {
                        #expect(row.old == want[2], sourceLocation: sourceLocation)
                        #expect(row.texts == [want[4], want[5]], sourceLocation: sourceLocation)
                    }
                }
            }
        }

        @Test func everyType() throws {
            let database = try CaptureStage.cluster.database()
            let values = try TypeSamples.values(in: database)
            let columns = values.indices.map { "c\($0) \(values[$0].type)" }.joined(separator: ", ")
            let most = values.map(\.values.count).max() ?? 0
            // The last row is empty. What the writer has set must not show.
            let inserts = (0...most).map { id in
                let chosen = values.map { id < $0.values.count ? $0.values[id] : "null" }
                return "insert into {t} values (\(id), \(chosen.joined(separator: ", ")))"
            }
            try compare(
                "id int primary key, \(columns)", before: TypeSamples.types,
                [#"set "TimeZone" = 'Asia/Kolkata'; set extra_float_digits = 0; set bytea_output = 'escape'"#] + inserts
                    + ["update {t} set id = id + 100", "delete from {t}"])
        }

        @Test func namesColumnsWithoutValuesAndGeneratedOnes() throws {
            try compare(
                """
                "Id" int primary key, "a b" text, "q""q" text, gen int generated always as ("Id" * 2) stored, nth int,
                op text, at text, lsn text, c0 text, n text, last text
                """,
                [
                    "insert into {t} (\"Id\", \"a b\", nth, op, c0, n) values (1, 'x', 5, 'o', 'c', 'n')",
                    "update {t} set \"Id\" = 2", "update {t} set \"q\"\"q\" = 'é'", "delete from {t}",
                ])
        }

        @Test("rows over the limit are reduced alike, and large ones under it are not")
        func large() throws {
            try compare(
                "id int primary key, body text, short text, doc json",
                [
                    "insert into {t} values (1, repeat('x', 300000), 'kept', '[1]')",
                    "insert into {t} values (2, repeat('x', 1048500), 'kept', '[1]')",
                    "insert into {t} values (3, repeat('x', 1048577), 'kept', '[1]')",
                    "insert into {t} values (4, repeat(chr(1), 200000), repeat('s', 62), '[1]')",
                    "insert into {t} values (5, repeat('x', 9000000), repeat('s', 63), '[1]')",
                    "update {t} set body = 'x' where id = 5", "update {t} set short = 'y' where id = 3",
                ])
        }

        @Test(
            "values that an UPDATE left in the TOAST table are in its record, with either identity",
            arguments: ["full", "default"])
        func toast(identity: String) throws {
            try compare(
                "id int primary key, body text, doc jsonb, n int", identity: identity, isSlow: identity != "full",
                [
                    "alter table {t} alter body set storage external, alter doc set storage external",
                    "insert into {t} values (1, repeat('x', 9000), to_jsonb(repeat('y', 9000)), 1)",
                    "update {t} set n = 2", "update {t} set doc = to_jsonb(repeat('z', 9000))", "update {t} set id = 7",
                ])
        }

        @Test(
            "of a row that is gone before it is read, what stayed in the TOAST table is left out, and not taken for null"
        )
        func toastOfARowThatIsGone() throws {
            let stage = try CaptureStage(
                """
                create table t (id int primary key, body text, n int);
                alter table t alter body set storage external
                """, reading: "t")
            try stage.capturing { _ in
                try stage.database.run(
                    """
                    insert into t values (1, repeat('x', 9000), 1); begin; update t set n = 2; update t set n = 3, id = 2;
                    delete from t; commit
                    """)
                let rows = try stage.stored(4)
                #expect(rows.map(\.operation) == ["I", "U", "U", "D"])
                #expect(rows[1].record == #"{"id":1,"n":2}"#)
                #expect(rows[2].record == #"{"id":2,"n":3}"#)
                #expect(rows[3].old == #"{"id":2}"#)
            }
        }

        @Test func statementsOfManyRowsAndSavepoints() throws {
            try compare(
                "id int primary key, n int",
                [
                    "insert into {t} select n, n from generate_series(1, 1000) n",
                    "update {t} set n = n + 1 where id < 500",
                    """
                    begin; insert into {t} values (2000, 1); savepoint a; update {t} set n = 2 where id = 2000; savepoint b;
                    delete from {t} where id = 2000; rollback to b; update {t} set n = 3 where id = 2000; commit
                    """,
                    "begin; delete from {t}; rollback", "delete from {t} where id <= 500", "truncate {t}",
                ])
        }

        @Test("a partition's rows are its root's, whatever the order of its columns")
        func partitions() throws {
            let stage = try CaptureStage(
                """
                create table t (id int, k int, body text, primary key (id, k)) partition by list (k);
                create table t1 partition of t for values in (1);
                create table t2 (body text, k int not null, id int not null); alter table t attach partition t2 for values in (2)
                """, reading: "t")
            try stage.capturing { _ in
                try stage.database.run("insert into t values (1, 1, 'a'), (2, 2, 'b'); update t set k = 2 where id = 1")
                let rows = try stage.stored(4)
                #expect(rows.map(\.operation) == ["I", "I", "D", "I"])
                #expect(rows[1].record == #"{"id":2,"k":2,"body":"b"}"#)
                #expect(rows[2].old == #"{"id":1,"k":1}"#)
                #expect(rows[3].record == #"{"id":1,"k":2,"body":"a"}"#)
            }
        }
    }
}

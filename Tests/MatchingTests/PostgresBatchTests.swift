import Matching
import Testing
import Wire

@Suite("Questions to Postgres")
struct PostgresBatchTests {
    private func question(
        _ filter: String, _ record: String, answers: [String] = [], table: Table = Fixture.things
    ) throws -> PostgresCondition {
        var row = RowRecord(Fixture.change(record, table: table))
        let bound = try Fixture.filter(filter, table, answers: answers)
        #expect(bound.evaluate(&row) == .unknown)
        return bound.question(about: &row)
    }

    @Test(arguments: [
        ("plain", #""plain""#), (#"we"ird"#, #""we""ird""#), ("Ünïcode t", #""Ünïcode t""#), ("", #""""#),
    ])
    func identifiers(name: String, sql: String) {
        #expect(SQLText.identifier(Name(name)) == sql)
    }

    @Test(arguments: [
        ("", "''"), ("a", "'a'"), ("O'Brien", "'O''Brien'"), (#"a\b"#, #"E'a\\b'"#), (#"\'"#, #"E'\\'''"#),
        ("é", "'é'"),
    ])
    func literals(text: String, sql: String) {
        #expect(SQLText.literal(text) == sql)
    }

    @Test(arguments: [
        ("body=gt.a", #"r."body" > 'a'"#), ("body=gte.a", #"r."body" >= 'a'"#), ("body=lt.a", #"r."body" < 'a'"#),
        ("body=lte.a", #"r."body" <= 'a'"#), ("body=not.ilike.a%", #"not (r."body" ilike 'a%')"#),
        ("note=eq.a", #"r."note" = 'a'"#), ("note=neq.a", #"r."note" <> 'a'"#), ("note=like.a", #"r."note" like 'a'"#),
        ("body=match.^a", #"r."body" ~ '^a'"#), ("body=imatch.^a", #"r."body" ~* '^a'"#),
        ("note=isdistinct.a", #"r."note" is distinct from 'a'"#),
        ("note=in.(a,null,O'B)", #"r."note" in ('a', null, 'O''B')"#),
        ("body=gt.a,note=eq.b,id=eq.1", #"(r."body" > 'a') and (r."note" = 'b')"#),
    ])
    func expressions(filter: String, sql: String) throws {
        let record = #"{"id":1,"body":"x","note":"y"}"#
        let count = try ChangeFilter(parsing: filter).bind(to: Fixture.things).queries.count
        let question = try question(filter, record, answers: Array(repeating: "true", count: count))
        #expect(question.expression == sql)
    }

    @Test func onlyTheCellsOfTheQuestionTravel() throws {
        let question = try question("body=gt.a,body=lt.z,id=eq.1", #"{"id":1,"body":"x\"é","note":"long"}"#)
        #expect(String(decoding: question.cells, as: UTF8.self) == #"{"body":"x\"é"}"#)
    }

    @Test func aBatchAsksEachRecordOnce() throws {
        let odd = Fixture.table(
            [Fixture.column(#"a"b"#, "text", .text)], name: #"t"x"#, oid: 9, schema: "S")
        let batch = PostgresBatch([
            try question("body=gt.a", #"{"id":1,"body":"x"}"#), try question("body=gt.a", #"{"id":2,"body":"y"}"#),
            try question("body=lt.b", #"{"id":3,"body":"x"}"#), try question("body=gt.a", #"{"id":4,"body":"x"}"#),
            try question(#"a"b=gt.c"#, #"{"a\"b":"it's"}"#, table: odd),
        ])
        #expect(
            batch.sql == """
                select -1 + v.n, array[(r."body" > 'a') is true, \
                case when v.n = any ('{1}'::bigint[]) then (r."body" < 'b') is true end] \
                from unnest(array['{"body":"x"}', '{"body":"y"}']::json[]) with ordinality as v(j, n), \
                json_populate_record(null::"public"."things", v.j) as r union all \
                select 1 + v.n, array[(r."a""b" > 'c') is true] \
                from unnest(array[E'{"a\\\\"b":"it''s"}']::json[]) with ordinality as v(j, n), \
                json_populate_record(null::"S"."t""x", v.j) as r
                """)
        #expect(batch.parseAnswers([(2, "{t}"), (0, "{t,f}"), (1, "{f,NULL}")]) == [true, false, false, true, true])
        // What is missing is not delivered.
        #expect(batch.parseAnswers([(0, "{t}")]) == [true, false, false, true, false])
    }

    @Test func patternsThatUnicodeCallsEquivalentAreTwo() throws {
        let batch = PostgresBatch([
            try question("body=ilike.\u{e9}", #"{"body":"x"}"#), try question("body=ilike.e\u{301}", #"{"body":"x"}"#),
        ])
        #expect(batch.parseAnswers([(0, "{t,f}")]) == [true, false])
    }
}

import Matching
import Testing
import Wire

@Suite("Binding a filter to a table")
struct FilterBindingTests {
    private func draft(_ text: String) throws -> FilterDraft {
        try ChangeFilter(parsing: text).bind(to: Fixture.things)
    }

    @Test(arguments: [
        ("nope=eq.1", #"column "nope" does not exist in table "public.things""#),
        ("small=eq.32768", #"value "32768" is out of range for type int2 in filter condition "small=eq.32768""#),
        ("count=gt.-2147483649", "out of range for type int4"),
        ("id=in.(1,9223372036854775808)", "out of range for type int8"),
        ("id=eq.99999999999999999999999", "out of range for type int8"), ("key=eq.nope", "is not a valid uuid"),
        ("key=eq.a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a1", "is not a valid uuid"),
        ("done=eq.maybe", "is not a valid boolean"),
        ("done=eq.o", "is not a valid boolean"), ("body=is.true", "needs a boolean column"),
        ("id=is.unknown", "needs a boolean column"), ("id=like.1%", "like needs a text column"),
        ("done=match.x", "match needs a text column"), ("seen=ilike.x", "ilike needs a text column"),
        ("key=imatch.x", "imatch needs a text column"), (#"body=like.a\"#, "lone backslash"),
        (#"body=ilike.a\"#, "lone backslash"),
    ])
    func errors(text: String, part: String) throws {
        let message = try #require(Fixture.message { _ = try draft(text) })
        #expect(message.contains(part), "\(message)")
    }

    @Test(arguments: [
        "id=eq.5", "id=eq.-9223372036854775808", "id=eq. +007 ", "small=in.(1,2,null)", "owner=eq.4294967295",
        "price=eq.1.005", "price=gt.1e3", "price=eq..5", "price=lt.NaN", "ratio=eq.1e-3", "ratio=eq.NaN",
        "ratio=eq.-Infinity",
        "real=eq.0.1", "body=eq.anything", "body=gt.m", "body=like.a%", "body=ilike.a%", "code=lt.x", "label=eq.short",
        "key=eq.{A0EEBC99-9C0B4EF8BB6D6BB9BD380A11}", "done=eq.t", "done=is.true", "born=eq.2026-01-31",
        "born=gt.infinity",
        "at=gte.2026-01-31 10:00", "at=eq.2026-01-31", "seen=eq.2026-01-31T10:00:00Z", "seen=eq.2026-01-31 10:00+05:30",
        "state=is.null", "note=not.is.null", "tags=in.()",
    ])
    func whatTheHubReadsItselfNeedsNoQuery(text: String) throws {
        #expect(try draft(text).queries.isEmpty)
    }

    @Test(arguments: [
        ("id=eq.0x10", 1), ("id=eq.abc", 1), ("id=eq.", 1), ("owner=eq.-1", 1), ("price=eq.1e5000", 1),
        ("price=eq.inf", 1),
        ("ratio=eq.1e999", 1), ("ratio=eq.1e-999", 1), ("age=eq.5", 1), ("born=eq.today", 1), ("born=eq.01/02/2026", 1),
        ("born=eq.2026-02-30", 1), ("at=eq.2026-01-31T10:00:00Z", 1), ("seen=eq.2026-01-31T10:00:00", 1),
        ("seen=eq.now", 1),
        ("state=eq.open", 1), ("state=in.(open,closed,null)", 2), ("state=gt.open", 1), ("note=eq.abc", 1),
        ("note=in.(a,b)", 1), ("note=like.a%", 1), ("note=ilike.a%", 1), ("tags=eq.{1}", 1), ("body=match.^a", 1),
        ("body=not.imatch.^a", 1),
        ("label=eq.\(String(repeating: "x", count: 64))", 1), ("id=eq.x,id=in.(y,z)", 3),
    ])
    func whatOnlyPostgresReadsIsAsked(text: String, count: Int) throws {
        #expect(try draft(text).queries.count == count)
    }

    @Test func queriesAreWrittenWithTheColumnsOwnType() throws {
        let queries = try draft(#"price=eq.inf,note=not.eq."a'b\\c",body=match."^a'""#).queries
        #expect(
            queries.map(\.expression) == [
                #"(select case when octet_length(v::text) <= 8192 then to_json(v) end "#
                    + #"from (select coalesce((null::"public"."things")."price", 'inf')) as x(v))"#,
                #"to_json((not ((null::"public"."things")."note" = E'a''b\\c')) is null)"#,
                #"to_json(coalesce((null::"public"."things")."body", '') ~ '^a''')"#,
            ])
        #expect(
            ValidationQuery.statement(for: Array(queries.suffix(2)))
                == #"values (\#(queries[1].expression)), (\#(queries[2].expression))"#)
        #expect(
            queries[0].refusalError("invalid input syntax").message
                == #"filter condition "price=eq.inf" was refused by Postgres: invalid input syntax"#)
    }

    @Test func answersBecomeValues() throws {
        let bound = try Fixture.filter("state=in.(OPEN,closed)", answers: [#""open""#, #""closed""#])
        var row = RowRecord(Fixture.change(#"{"id":1,"state":"open"}"#))
        #expect(bound.evaluate(&row) == .match)
        var other = RowRecord(Fixture.change(#"{"id":1,"state":"OPEN"}"#))
        #expect(bound.evaluate(&other) == .noMatch)
    }

    @Test(arguments: [[], [#""open""#, #""closed""#], ["null"], ["[1]"]])
    func answersMustFit(answers: [String]) {
        #expect(throws: SubscriptionError.self) { try Fixture.filter("state=eq.open", answers: answers) }
    }

    @Test func aSelectionNeedsItsColumns() throws {
        #expect(throws: Never.self) { try Selection(["id", "body"])?.checkColumns(in: Fixture.things) }
        #expect(
            Fixture.message { try Selection(["id", "nope"])?.checkColumns(in: Fixture.things) }
                == #"column "nope" does not exist in table "public.things""#)
    }
}

import Matching
import Testing

@Suite("Evaluating a filter")
struct FilterEvaluationTests {
    @Test(arguments: [
        ("id=eq.5", #"{"id":5}"#, true), ("id=eq.005", #"{"id":5}"#, true), ("id=eq.5", #"{"id":50}"#, false),
        ("id=neq.5", #"{"id":6}"#, true), ("id=neq.5", #"{"id":5}"#, false), ("id=not.neq.5", #"{"id":5}"#, true),
        ("id=gt.9223372036854775806", #"{"id":9223372036854775807}"#, true),
        ("id=lt.9223372036854775807", #"{"id":9223372036854775807}"#, false), ("id=lt.0", #"{"id":-1}"#, true),
        ("id=in.(1,2,3)", #"{"id":2}"#, true), ("id=in.(1,2,3)", #"{"id":4}"#, false),
        ("id=not.in.(1,2)", #"{"id":4}"#, true),
        ("id=not.in.(1,null)", #"{"id":4}"#, false), ("id=in.(4,null)", #"{"id":4}"#, true),
        ("id=in.()", #"{"id":4}"#, false),
        ("id=not.in.()", #"{"id":4}"#, true), ("price=eq.1.5", #"{"price":1.500}"#, true),
        ("price=eq.1.005", #"{"price":1.01}"#, false),
        ("price=gt.99999999999999999999.5", #"{"price":99999999999999999999.51}"#, true),
        ("price=gt.99999999999999999999.5", #"{"price":99999999999999999999.49}"#, false),
        ("price=lt.-1", #"{"price":-1.5}"#, true), ("price=lt.-1.5", #"{"price":-1}"#, false),
        ("price=eq.0", #"{"price":-0.00}"#, true), ("price=eq.1e2", #"{"price":100}"#, true),
        ("price=lt.nan", #"{"price":1e300}"#, true), ("price=eq.nan", #"{"price":"NaN"}"#, true),
        ("price=gt.5", #"{"price":"Infinity"}"#, true), ("price=lt.5", #"{"price":"-Infinity"}"#, true),
        ("ratio=eq.0.1", #"{"ratio":1e-1}"#, true), ("ratio=gt.1", #"{"ratio":"NaN"}"#, true),
        ("ratio=eq.nan", #"{"ratio":"NaN"}"#, true), ("ratio=eq.0", #"{"ratio":-0}"#, true),
        ("ratio=lt.infinity", #"{"ratio":1.7e308}"#, true), ("ratio=lt.-1", #"{"ratio":-2}"#, true),
        ("ratio=gt.-1", #"{"ratio":-2}"#, false), ("real=eq.0.1", #"{"real":0.1}"#, true),
        ("real=eq.0.10000000149", #"{"real":0.1}"#, true), ("ratio=eq.0.10000000149", #"{"ratio":0.1}"#, false),
        ("body=eq.a\u{e9}", #"{"body":"a\u00e9"}"#, true), ("body=eq.a\u{e9}", "{\"body\":\"ae\u{301}\"}", false),
        ("body=eq.a", #"{"body":"A"}"#, false), (#"body=eq."""#, #"{"body":""}"#, true),
        ("body=in.(a,b)", #"{"body":"b"}"#, true),
        ("body=eq.🦆", #"{"body":"\ud83e\udd86"}"#, true), ("code=lt.b", #"{"code":"a"}"#, true),
        ("code=lt.a", #"{"code":"B"}"#, true),
        ("code=gte.é", #"{"code":"z"}"#, false), ("body=like.a%", #"{"body":"abc"}"#, true),
        ("body=like.%b%", #"{"body":"abc"}"#, true),
        ("body=like.a_c", #"{"body":"aéc"}"#, true), ("body=like._", #"{"body":"🦆"}"#, true),
        ("body=like.__", #"{"body":"🦆"}"#, false),
        (#"body=like.100\%"#, #"{"body":"100%"}"#, true), (#"body=like.100\%"#, #"{"body":"1000"}"#, false),
        ("body=like.%ab%ab", #"{"body":"ababxab"}"#, true), ("body=like.a%b%c", #"{"body":"acb"}"#, false),
        (#"body=like."""#, #"{"body":""}"#, true), ("body=like.%", #"{"body":""}"#, true),
        ("body=not.like.a%", #"{"body":"b"}"#, true),
        ("key=eq.A0EEBC999C0B4EF8BB6D6BB9BD380A11", #"{"key":"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"}"#, true),
        ("key=gt.a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", #"{"key":"b0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"}"#, true),
        ("done=eq.yes", #"{"done":true}"#, true), ("done=eq.off", #"{"done":true}"#, false),
        ("done=lt.true", #"{"done":false}"#, true),
        ("done=is.true", #"{"done":true}"#, true), ("done=is.false", #"{"done":true}"#, false),
        ("done=not.is.true", #"{"done":false}"#, true),
        ("done=is.unknown", #"{"done":true}"#, false), ("born=lt.2026-02-01", #"{"born":"2026-01-31"}"#, true),
        ("born=lt.2024-03-01", #"{"born":"2024-02-29"}"#, true),
        ("born=gt.1900-02-28", #"{"born":"1900-03-01"}"#, true),
        ("born=eq.2000-02-29", #"{"born":"2000-02-29"}"#, true),
        ("born=lt.2025-01-01", #"{"born":"2024-12-31"}"#, true),
        ("born=gt.2026-02-01", #"{"born":"10000-01-01"}"#, true),
        ("born=lt.0001-01-01", #"{"born":"0001-12-31 BC"}"#, true),
        ("born=gt.2026-02-01", #"{"born":"infinity"}"#, true), ("born=lt.2026-02-01", #"{"born":"-infinity"}"#, true),
        ("at=eq.2026-01-01 10:00", #"{"at":"2026-01-01T10:00:00"}"#, true),
        ("at=lt.2026-01-01 10:00:00.2", #"{"at":"2026-01-01T10:00:00.15"}"#, true),
        ("at=gt.9999-12-31", #"{"at":"294276-12-31T23:59:59.999999"}"#, true),
        ("at=lt.0001-01-01", #"{"at":"4713-01-01T00:00:00 BC"}"#, true),
        ("seen=eq.2026-01-01T10:00:00Z", #"{"seen":"2026-01-01T15:30:00+05:30"}"#, true),
        ("seen=eq.2026-01-01T10:00:00-01:00", #"{"seen":"2026-01-01T11:00:00+00:00"}"#, true),
        ("seen=gt.2026-01-01T10:00:00Z", #"{"seen":"2026-01-01T10:00:00.000001+00:00"}"#, true),
        ("seen=lt.2026-01-01T10:00:00Z", #"{"seen":"infinity"}"#, false),
    ])
    func valuesAreComparedAsPostgresComparesThem(filter: String, record: String, matches: Bool) throws {
        #expect(try Fixture.verdict(filter, record) == (matches ? .match : .noMatch))
    }

    @Test(arguments: ["eq", "neq", "lt", "lte", "gt", "gte", "like", "ilike", "match", "imatch"], ["", "not."])
    func nullMatchesNothing(name: String, negation: String) throws {
        let answers = name.hasSuffix("match") ? ["true"] : []
        #expect(try Fixture.verdict("body=\(negation)\(name).x", #"{"body":null}"#, answers: answers) == .noMatch)
    }

    @Test(arguments: [
        ("body=is.null", true), ("body=not.is.null", false), ("body=isdistinct.x", true),
        ("body=not.isdistinct.x", false),
        ("body=in.(x,null)", false), ("body=not.in.(x)", false), ("body=in.()", false), ("body=not.in.()", true),
        ("done=is.true", false), ("done=not.is.true", true), ("done=is.unknown", true), ("done=not.is.false", true),
    ])
    func nullMatchesWhereSQLSaysSo(filter: String, matches: Bool) throws {
        #expect(try Fixture.verdict(filter, #"{"body":null,"done":null}"#) == (matches ? .match : .noMatch))
    }

    @Test(arguments: [
        ("body=isdistinct.x", #"{"body":"x"}"#, false), ("body=not.isdistinct.x", #"{"body":"x"}"#, true),
        ("body=isdistinct.x", #"{"body":"y"}"#, true), ("body=is.null", #"{"body":"null"}"#, false),
    ])
    func distinctness(filter: String, record: String, matches: Bool) throws {
        #expect(try Fixture.verdict(filter, record) == (matches ? .match : .noMatch))
    }

    @Test(arguments: ["body=eq.x", "body=is.null", "body=not.is.null", "body=isdistinct.x", "body=not.in.()"])
    func aColumnThatIsNotThereMatchesNothing(filter: String) throws {
        #expect(try Fixture.verdict(filter, #"{"id":1}"#) == .noMatch)
    }

    @Test(arguments: [
        ("body=gt.a", [], #"{"body":"b"}"#), ("body=ilike.a%", [], #"{"body":"b"}"#),
        ("body=match.a", ["true"], #"{"body":"b"}"#),
        ("note=eq.a", ["true"], #"{"note":"a    "}"#), ("state=gt.open", ["true"], #"{"state":"open"}"#),
        ("tags=isdistinct.{1}", ["true"], #"{"tags":[1]}"#), ("price=eq.1", [], #"{"price":"strange"}"#),
        ("seen=eq.2026-01-01T10:00:00Z", [], #"{"seen":"tomorrow"}"#),
    ])
    func theRestIsUnknown(filter: String, answers: [String], record: String) throws {
        #expect(try Fixture.verdict(filter, record, answers: answers) == .unknown)
    }

    @Test func noMatchWinsOverUnknownInAnyOrder() throws {
        let record = #"{"id":1,"body":"b"}"#
        #expect(try Fixture.verdict("body=gt.a,id=eq.2", record) == .noMatch)
        #expect(try Fixture.verdict("id=eq.2,body=gt.a", record) == .noMatch)
        #expect(try Fixture.verdict("id=eq.1,body=gt.a", record) == .unknown)
        #expect(try Fixture.verdict("id=eq.1,body=eq.b", record) == .match)
    }

    @Test func aReducedRecordIsRatherDeliveredThanLost() throws {
        func verdict(_ text: String) throws -> Verdict {
            var row = RowRecord(Fixture.change(#"{"id":1}"#, isReduced: true))
            return try Fixture.filter(text).evaluate(&row)
        }
        #expect(try verdict("body=eq.x") == .match)
        #expect(try verdict("body=is.null") == .noMatch)
        #expect(try verdict("body=not.is.null") == .match)
        #expect(try verdict("id=eq.2,body=eq.x") == .noMatch)
    }

    @Test func aDeletedRowIsMatchedAsFarAsItIsKnown() throws {
        var row = RowRecord(Fixture.change(nil, old: #"{"id":7,"body":"x"}"#, operation: .delete))
        #expect(try Fixture.filter("id=eq.7").evaluate(&row) == .match)
        #expect(try Fixture.filter("body=eq.x").evaluate(&row) == .match)
        #expect(try Fixture.filter("body=eq.y").evaluate(&row) == .noMatch)
        var key = RowRecord(Fixture.change(nil, old: #"{"id":7}"#, operation: .delete))
        #expect(try Fixture.filter("id=eq.7").evaluate(&key) == .match)
        #expect(try Fixture.filter("body=eq.x").evaluate(&key) == .noMatch)
        #expect(try Fixture.filter("body=is.null").evaluate(&key) == .noMatch)
    }

    @Test func aFilterFollowsColumnsThatMoved() throws {
        let later = Fixture.table([
            Fixture.column("new", "text", .text), Fixture.column("body", "text", .text),
            Fixture.column("id", "text", .text, key: true),
        ])
        var row = RowRecord(Fixture.change(#"{"new":"n","body":"b","id":"7"}"#, table: later))
        #expect(try Fixture.filter("body=eq.b").evaluate(&row) == .match)
        #expect(try Fixture.filter("body=eq.n").evaluate(&row) == .noMatch)
        // id was a number when the filter was bound.
        #expect(try Fixture.filter("id=eq.7").evaluate(&row) == .unknown)
        #expect(try Fixture.filter("price=eq.7").evaluate(&row) == .noMatch)
    }

    @Test func keysInAnotherOrderAndUnknownOnesAreFound() throws {
        #expect(try Fixture.verdict("id=eq.7,body=eq.b", #"{"gone":1,"body":"b","id":7}"#) == .match)
    }
}

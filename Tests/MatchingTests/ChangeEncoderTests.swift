import Matching
import Testing
import Wire

@Suite("Encoding a change")
struct ChangeEncoderTests {
    private static let todos = Fixture.table(
        [
            Fixture.column("id", "int8", .decimal, key: true), Fixture.column("t", "text", .text),
            Fixture.column("x", "_int4", .postgres),
        ], name: "todos")

    private func encode(_ change: RowChange, _ select: [String] = []) -> String {
        var encoder = ChangeEncoder()
        return String(
            decoding: encoder.encodeData(for: change, view: ChangeView(selection: Selection(select))), as: UTF8.self)
    }

    private static let head =
        #"{"schema":"public","table":"todos","commit_timestamp":"2026-01-01T00:00:00.123Z","type":""#
    private static let columns =
        #","columns":[{"name":"id","type":"int8"},{"name":"t","type":"text"},{"name":"x","type":"_int4"}]"#

    @Test func anInsertHasNoOldRecord() {
        let row = #"{"id":7,"t":"é\n\"","x":[1,null]}"#
        #expect(
            encode(Fixture.change(row, table: Self.todos))
                == Self.head + #"INSERT""# + Self.columns + #","record":\#(row),"errors":null}"#)
    }

    @Test func anUpdateShowsTheOldIdentity() {
        let change = Fixture.change(
            #"{"id":7,"t":"new","x":null}"#, old: #"{"id":6,"t":"old","x":[1]}"#, operation: .update, table: Self.todos)
        #expect(
            encode(change) == Self.head + #"UPDATE""# + Self.columns
                + #","record":{"id":7,"t":"new","x":null},"old_record":{"id":6},"errors":null}"#)
    }

    /// As the WAL tells of it; what is shown is what triggers would have told.
    @Test func anUpdateThatLeftTheIdentityShowsItAllTheSame() {
        let row = #"{"id":6,"t":"new","x":null}"#
        let whole = Fixture.change(
            row, old: #"{"id":6,"t":"old","x":[1]}"#, operation: .update, table: Self.todos)
        let change = Fixture.change(row, operation: .update, table: Self.todos)
        #expect(encode(change) == encode(whole))
        #expect(encode(change, ["t"]) == encode(whole, ["t"]))
        #expect(encode(change).contains(#""old_record":{"id":6},"#))
    }

    @Test func aDeleteHasNoRecord() {
        let change = Fixture.change(nil, old: #"{"id":6,"t":"old","x":[1]}"#, operation: .delete, table: Self.todos)
        #expect(
            encode(change) == Self.head + #"DELETE""# + Self.columns + #","old_record":{"id":6},"errors":null}"#)
    }

    @Test func aFullIdentityShowsTheWholeOldRow() {
        let full = Fixture.table(
            [Fixture.column("a", "text", .text, identity: true), Fixture.column("b", "text", .text, identity: true)],
            name: "todos")
        let change = Fixture.change(nil, old: #"{"a":1.50,"b":"x"}"#, operation: .delete, table: full)
        #expect(encode(change).contains(#""old_record":{"a":1.50,"b":"x"},"#))
    }

    @Test func aTableWithoutPrimaryKeyIsDelivered() {
        let plain = Fixture.table([Fixture.column("a", "text", .text)], name: "todos")
        let change = Fixture.change(#"{"a":"n"}"#, old: #"{"a":"o"}"#, operation: .update, table: plain)
        #expect(encode(change).hasSuffix(#""record":{"a":"n"},"old_record":{},"errors":null}"#))
    }

    @Test func aSelectionKeepsItsColumnsAndThePrimaryKey() {
        let change = Fixture.change(
            #"{"id":7,"t":"new","x":[2]}"#, old: #"{"id":6,"t":"old","x":[1]}"#, operation: .update, table: Self.todos)
        #expect(
            encode(change, ["x"]) == Self.head
                + #"UPDATE","columns":[{"name":"id","type":"int8"},{"name":"x","type":"_int4"}],"#
                + #""record":{"id":7,"x":[2]},"old_record":{"id":6},"errors":null}"#)
    }

    @Test func keysThatAreMissingAreLeftOut() {
        #expect(encode(Fixture.change(#"{"id":7}"#, table: Self.todos), ["t"]).contains(#""record":{"id":7},"#))
        #expect(
            encode(Fixture.change(#"{"gone":1,"x":[],"id":7}"#, table: Self.todos), ["x"]).contains(
                #""record":{"x":[],"id":7},"#))
        #expect(encode(Fixture.change(nil, table: Self.todos)).contains(#""record":{},"#))
    }

    @Test func namesAreEscaped() throws {
        let odd = Fixture.table([Fixture.column("a\"b\\", "t\n", .text)], name: "x\"y", schema: "é")
        let data = encode(Fixture.change(#"{"a\"b\\":1}"#, table: odd))
        let json = try Fixture.json(data)
        #expect(json["table"]?.string == "x\"y")
        #expect(json["columns"]?.elements.first?["name"]?.string == "a\"b\\")
        #expect(encode(Fixture.change(#"{"a\"b\\":1}"#, table: odd), ["a\"b\\"]).contains(#""record":{"a\"b\\":1}"#))
    }

    @Test func aReducedChangeSaysSo() {
        let change = Fixture.change(#"{"id":7}"#, table: Self.todos, isReduced: true)
        #expect(encode(change).hasSuffix(#""record":{"id":7},"errors":["Error 413: Payload Too Large"]}"#))
    }

    @Test func dataOverTheLimitKeepsSmallValues() {
        let long = String(repeating: "y", count: 1_100_000)
        let edge = #""\#(String(repeating: "z", count: 62))""#
        let change = Fixture.change(
            #"{"id":7,"t":"\#(long)","x":\#(edge)}"#, old: #"{"id":7,"t":"\#(long)","x":1}"#, operation: .update,
            table: Self.todos)
        #expect(
            encode(change).hasSuffix(
                #""record":{"id":7,"x":\#(edge)},"old_record":{"id":7},"errors":["Error 413: Payload Too Large"]}"#))
        // Whoever did not select the large value gets the rest whole.
        #expect(encode(change, ["x"]).hasSuffix(#""errors":null}"#))
    }

    @Test func theLimitIsExact() {
        let empty = encode(Fixture.change(#"{"id":7,"t":""}"#, table: Self.todos)).utf8.count
        let room = ChangeLimits.dataBytes - empty
        func fits(_ count: Int) -> Bool {
            encode(Fixture.change(#"{"id":7,"t":"\#(String(repeating: "y", count: count))"}"#, table: Self.todos))
                .hasSuffix(#""errors":null}"#)
        }
        #expect(fits(room))
        #expect(!fits(room + 1))
    }

    @Test func everyEncodingIsJSON() throws {
        for (record, old, operation) in [
            (#"{"id":1,"t":null,"x":{"a":[]}}"#, nil, RowChange.Operation.insert),
            ("{}", "{}", .update), (nil, #"{"id":1}"#, .delete), (nil, nil, .delete),
        ] as [(String?, String?, RowChange.Operation)] {
            let change = Fixture.change(record, old: old, operation: operation, table: Self.todos)
            for select in [[], ["t"], ["id", "x"]] {
                #expect(throws: Never.self) { try Fixture.json(encode(change, select)) }
            }
        }
    }

    @Test func anAlteredTableIsEncodedWithItsNewColumns() {
        var encoder = ChangeEncoder()
        _ = encoder.encodeData(for: Fixture.change(#"{"id":1}"#, table: Self.todos))
        let altered = Fixture.table([Fixture.column("id", "int8", .decimal, key: true)], name: "todos")
        let data = String(
            decoding: encoder.encodeData(for: Fixture.change(#"{"id":1}"#, table: altered)), as: UTF8.self)
        #expect(data.contains(#""columns":[{"name":"id","type":"int8"}]"#))
    }

    // MARK: What a role may see

    private static let whole = Fixture.table(
        [
            Fixture.column("id", "int8", .decimal, key: true), Fixture.column("t", "text", .text, identity: true),
            Fixture.column("x", "_int4", .postgres, identity: true),
        ], name: "todos")

    private func encode(_ change: RowChange, _ view: ChangeView) -> String {
        var encoder = ChangeEncoder()
        return String(decoding: encoder.encodeData(for: change, view: view), as: UTF8.self)
    }

    @Test func columnsWithoutPrivilegeAreNotThere() {
        let row = #"{"id":7,"t":"secret","x":[1],"dropped":"secret too"}"#
        let shown = encode(Fixture.change(row, table: Self.whole), ChangeView(granted: ["id", "x"]))
        #expect(
            shown == Self.head
                + #"INSERT","columns":[{"name":"id","type":"int8"},{"name":"x","type":"_int4"}],"record":{"id":7,"x":[1]},"errors":null}"#
        )
        // Not even where all of today's columns are granted: the record may have others.
        let all = encode(Fixture.change(row, table: Self.whole), ChangeView(granted: ["id", "t", "x"]))
        #expect(!all.contains("dropped"))
    }

    @Test func aKeyWithoutPrivilegeIsNotSelectedEither() {
        let shown = encode(
            Fixture.change(#"{"id":7,"t":"a","x":null}"#, table: Self.whole),
            ChangeView(selection: Selection(["x"]), granted: ["t", "x"]))
        #expect(shown.contains(#""columns":[{"name":"x","type":"_int4"}],"record":{"x":null}"#))
    }

    @Test func theOldRowIsItsKeyAlone() {
        let change = RowChange(
            id: 1, table: Self.whole, operation: .update, commitTimestamp: "2026-01-01T00:00:00.123Z",
            record: Array(#"{"id":7,"t":"b","x":null}"#.utf8), oldRecord: Array(#"{"id":7,"t":"a","x":[1]}"#.utf8),
            isReduced: false)
        #expect(encode(change, ChangeView()).contains(#""old_record":{"id":7,"t":"a","x":[1]}"#))
        #expect(encode(change, ChangeView(oldRecord: .primaryKey)).contains(#""old_record":{"id":7},"#))
        #expect(
            encode(change, ChangeView(granted: ["t"], oldRecord: .primaryKey)).contains(#""old_record":{},"#))
    }
}

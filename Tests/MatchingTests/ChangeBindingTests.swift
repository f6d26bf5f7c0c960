import Matching
import Testing
import Wire

@Suite("Entries of config.postgres_changes")
struct ChangeBindingTests {
    private func binding(_ text: String) throws -> ChangeBinding {
        ChangeBinding(try Fixture.json(text))
    }

    private func parameters(_ text: String) throws -> ChangeParameters {
        try binding(text).parameters.get()
    }

    @Test(arguments: [
        ("INSERT", EventSet.insert), ("insert", .insert), ("Update", .update), ("DELETE", .delete), ("*", .all),
        ("", .all),
        ("TRUNCATE", .all), ("nonsense", .all),
    ])
    func events(text: String, events: EventSet) throws {
        #expect(try parameters(#"{"event":"\#(text)","schema":"public"}"#).events == events)
    }

    @Test(
        arguments: [
            (#"{"schema":"s"}"#, "s", nil), (#"{"table":"t"}"#, "public", "t"),
            (#"{"schema":"s","table":"t"}"#, "s", "t"),
            (#"{"schema":"*"}"#, nil, nil), (#"{"schema":"*","table":"t"}"#, nil, "t"),
            (#"{"schema":"s","table":"*"}"#, "s", nil),
            (#"{"schema":"s","table":null,"filter":null,"select":null}"#, "s", nil),
        ] as [(String, String?, String?)])
    func tables(text: String, schema: String?, name: String?) throws {
        let tables = try parameters(text).tables
        #expect(tables.schema?.text == schema)
        #expect(tables.name?.text == name)
        #expect(tables.isWildcard == (schema == nil || name == nil))
    }

    @Test(arguments: [
        ("{}", "must name at least a schema or a table"), ("5", "must be an object"), ("[]", "must be an object"),
        (#"{"schema":5}"#, "schema must be a string"), (#"{"table":{}}"#, "table must be a string"),
        (#"{"table":"t","filter":[1]}"#, "filter must be a string"),
        (#"{"table":"t","select":"id"}"#, "must be a list"),
        (#"{"schema":"s","select":["id"]}"#, "explicit schema and table"),
        (#"{"schema":"*","table":"t","select":["id"]}"#, "explicit schema and table"),
        (#"{"table":"t","filter":"undefined"}"#, "form column=operator.value"),
        (#"{"event":"INSERT"}"#, "must name at least a schema or a table"),
    ])
    func errors(text: String, part: String) throws {
        let message = try #require(Fixture.message { _ = try parameters(text) })
        #expect(message.contains(part), "\(message)")
    }

    @Test func selectionIsASet() throws {
        let one = try parameters(#"{"table":"t","select":["b","a","b",null,5]}"#).selection
        #expect(one?.columns == ["a", "b"])
        #expect(try parameters(#"{"table":"t","select":[]}"#).selection == nil)
        #expect(Selection(["x", "y"]) == Selection(["y", "x"]))
    }

    @Test(arguments: [
        ("{}", #"{"id":7}"#), ("{ }", #"{"id":7}"#), (#"{"schema":"s"}"#, #"{"schema":"s","id":7}"#),
        (#"{"id":"mine","schema":"s"}"#, #"{"schema":"s","id":7}"#),
        (#"{"schema":"s","id":1,"id":2}"#, #"{"schema":"s","id":7}"#),
        (#"{"\u0069d":1,"table":"t"}"#, #"{"table":"t","id":7}"#), ("5", #"{"id":7}"#),
        (
            #"{"filter":"a=eq.\"é,\\\"","x":{"id":1},"n":1.50}"#,
            #"{"filter":"a=eq.\"é,\\\"","x":{"id":1},"n":1.50,"id":7}"#
        ),
    ])
    func echo(text: String, echo: String) throws {
        #expect(String(decoding: try binding(text).echoJSON(id: 7), as: UTF8.self) == echo)
    }

    @Test func theHashIsStable() throws {
        // Computed apart from the hub: one that answered otherwise would tell resumed clients other ids than before.
        #expect(try binding(#"{"event":"INSERT","schema":"public","table":"todos"}"#).parametersHash == 1377358855)
        #expect(try binding(#"{"schema":"public","table":"todos","filter":"id=gt.0"}"#).parametersHash == 2144460005)
    }

    @Test func theHashIsOfTheParametersNotOfTheText() throws {
        let one = try binding(#"{"event":"insert","table":"t","select":["a","b"]}"#)
        let other = try binding(#"{ "select":["b","a"], "table":"t","schema":"public","event":"INSERT","id":9}"#)
        #expect(one == other)
        #expect(one.parametersHash == other.parametersHash)
        #expect(try binding(#"{"table":"t"}"#) != binding(#"{"table":"t","filter":"a=eq.1"}"#))
        #expect(try binding(#"{"table":"tx","filter":"y=eq.1"}"#) != binding(#"{"table":"t","filter":"xy=eq.1"}"#))
        #expect(
            try binding(#"{"table":"t","filter":"a=eq.é"}"#)
                != binding("{\"table\":\"t\",\"filter\":\"a=eq.e\u{301}\"}"))
    }

    @Test func idsAreSharedByEqualParametersOnly() throws {
        let bindings = try [#"{"table":"a"}"#, #"{"table":"b"}"#, #"{"table":"a"}"#, "{}", "5"].map(binding)
        let ids = ChangeBinding.ids(for: bindings)
        #expect(ids[0] == ids[2])
        #expect(Set(ids).count == 4)
        #expect(ids.allSatisfy { (1...Int(Int32.max)).contains($0) })
        #expect(ids[0] == bindings[0].parametersHash)
    }

    @Test func idsOfManyParametersNeverMeet() throws {
        let bindings = try (0..<20_000).map { try binding(#"{"table":"t","filter":"id=eq.\#($0)"}"#) }
        #expect(Set(ChangeBinding.ids(for: bindings)).count == bindings.count)
    }
}

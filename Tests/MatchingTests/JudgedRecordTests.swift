import Matching
import Testing

@Suite("Records as policies and filters are asked about them")
struct JudgedRecordTests {
    private static let documents = Table(
        oid: 1, schema: "public", name: "documents",
        columns: [
            Fixture.column("id", "int8", .decimal, key: true),
            Column(
                name: "doc", type: "jsonb", sqlType: "jsonb", comparison: .postgres, isPrimaryKey: false,
                isReplicaIdentity: false, isJSON: true),
            Fixture.column("h", "hstore", .postgres), Fixture.column("body", "text", .text),
        ])

    private func change(_ record: String, text: String?) -> RowChange {
        RowChange(
            id: 1, table: Self.documents, operation: .insert, commitTimestamp: "", record: Array(record.utf8),
            oldRecord: nil, text: text.map { Array($0.utf8) }, isReduced: false)
    }

    private static let records: [(record: String, text: String?, judged: String)] = [
        // Nothing is known, or all is well.
        (#"{"id":1,"doc":null,"h":null,"body":"x"}"#, nil, #"{"id":1,"doc":null,"h":null,"body":"x"}"#),
        (#"{"id":1,"doc":null,"h":null,"body":"x"}"#, "", #"{"id":1,"doc":null,"h":null,"body":"x","":[]}"#),
        (
            #"{"id":1,"doc":null,"h":{"a":"b"},"body":"x"}"#, ##"(1,null,"""a""=>""b""",x)"##,
            #"{"id":1,"doc":null,"h":"\"a\"=>\"b\"","body":"x","":{"doc":"null"}}"#
        ),
        (#"{"id":1,"doc":null,"h":null,"body":""}"#, #"(1,,,"")"#, #"{"id":1,"doc":null,"h":null,"body":"","":{}}"#),
        (
            #"{"id":1,"doc": null ,"h":null,"body":"a,)\"\\"}"#, ##"(1," null ",,"a,)""\\")"##,
            #"{"id":1,"doc":null,"h":null,"body":"a,)\"\\","":{"doc":" null "}}"#
        ),
        // A column that was JSON, or an object, and is a text now.
        (
            #"{"id":1,"doc":null,"h":null,"body":null}"#, "(1,,,null)",
            #"{"id":1,"doc":null,"h":null,"body":"null","":{}}"#
        ),
        // Of a column that has another name by now nobody knows how it is read.
        (
            #"{"id":1,"gone":{"a":1},"too":null,"null":null,"text":"x","doc":{},"h":null,"body":"x"}"#,
            "(1,a=>1,null,,x,{},,x)",
            #"{"id":1,"null":null,"text":"x","doc":{},"h":null,"body":"x","":{}}"#
        ),
        // Texts of another row, and of none.
        (#"{"id":1,"doc":null}"#, "(1,null,x)", #"{"id":1,"doc":null}"#),
        (#"{"id":1,"doc":null}"#, "(1)", #"{"id":1,"doc":null}"#),
        (#"{"id":1,"doc":null}"#, "1,null", #"{"id":1,"doc":null}"#),
        (#"{"id":1,"doc":null}"#, #"(1,"null)"#, #"{"id":1,"doc":null}"#),
    ]

    @Test("texts take the place of what JSON does not keep, and nulls are told apart", arguments: Self.records.indices)
    func judged(index: Int) {
        let (record, text, judged) = Self.records[index]
        #expect(change(record, text: text).judgedRecord.map { String(decoding: $0, as: UTF8.self) } == judged)
    }

    @Test("a JSON null is not SQL's, and Postgres is asked about it as what it is") func jsonNull() throws {
        let filter = try Fixture.filter("doc=is.null", Self.documents)
        let record = #"{"id":1,"doc":null,"h":null,"body":"x"}"#
        var unknown = RowRecord(change(record, text: nil))
        #expect(filter.evaluate(&unknown) == .match)
        var sql = RowRecord(change(record, text: ""))
        #expect(filter.evaluate(&sql) == .match)
        var json = RowRecord(change(record, text: "(1,null,,x)"))
        #expect(filter.evaluate(&json) == .unknown)
        #expect(filter.question(about: &json).expression == "cast('null' as jsonb) is null")
    }
}

import Matching
import Testing
import Wire

/// Requests for rows, and the SQL that they become (docs/rows.md).
@Suite struct RowsStatementTests {
    private static let table = Table(
        oid: 1, schema: "public", name: "messages",
        columns: [
            column("id", "int8", .decimal, isKey: true), column("room", "int4", .decimal),
            column("body", "text", .text),
            column("at", "timestamptz", .timestamptz),
        ])

    private static func column(_ name: Name, _ type: Name, _ comparison: Comparison, isKey: Bool = false) -> Column {
        Column(
            name: name, type: type, sqlType: type, comparison: comparison, isPrimaryKey: isKey, isReplicaIdentity: isKey
        )
    }

    private func request(_ json: String) throws -> RowsRequest { try RowsRequest(JSON(parsing: Array(json.utf8))) }

    private func sql(_ json: String, granted: Set<Name>? = nil) throws -> String {
        try RowsStatement(request(json), of: Self.table, granted: granted).makeScript(
            isUTF8: true, bytes: 1000, as: "authenticated"
        )
        .sql
    }

    private func refusal(of json: String, granted: Set<Name>? = nil) -> String? {
        do {
            _ = try sql(json, granted: granted)
            return nil
        } catch let error as SubscriptionError {
            return error.message
        } catch {
            return "\(error)"
        }
    }

    @Test func whatIsLeftOutHasItsDefault() throws {
        let request = try request(#"{"table":"messages","filter":null,"after":null,"limit":null}"#)
        #expect(request.schema == "public" && request.limit == RowsRequest.defaultRows && request.order.isEmpty)
        let sql = try sql(#"{"table":"messages"}"#)
        #expect(sql.contains(#"from "public"."messages" as t order by t."id" limit 101"#), "\(sql)")
        #expect(sql.contains(#"select t."id", t."room", t."body", t."at""#))
    }

    @Test func aColumnMayHaveTheNameOfTheRow() throws {
        let table = Table(
            oid: 1, schema: "public", name: "t",
            columns: [Self.column("c", "text", .text, isKey: true), Self.column("cc", "text", .text)])
        let statement = try RowsStatement(request(#"{"table":"t"}"#), of: table, granted: nil)
        let sql = statement.makeScript(isUTF8: true, bytes: 1, as: "authenticated").sql
        #expect(sql.contains(#"select ccc from (select t."c", t."cc") as ccc"#), "\(sql)")
    }

    @Test func theKeyFollowsTheOrderInItsDirection() throws {
        #expect(try sql(#"{"table":"messages","order":"at.desc"}"#).contains(#"order by t."at" desc, t."id" desc"#))
        #expect(try sql(#"{"table":"messages","order":"id.desc,at"}"#).contains(#"order by t."id" desc, t."at" limit"#))
    }

    @Test func filtersAreTheOnesOfChanges() throws {
        let sql = try sql(#"{"table":"messages","filter":"room=in.(1,2),body=not.like.O'%","limit":3}"#)
        #expect(sql.contains(#"where (t."room" in ('1', '2')) and (not (t."body" like 'O''%')) order by"#), "\(sql)")
    }

    @Test func aPlaceIsComparedAsAnIndexCan() throws {
        #expect(
            try sql(#"{"table":"messages","order":"at.desc","after":{"at":"2026-01-01","id":7}}"#)
                .contains(#"where ((t."at", t."id") < ('2026-01-01', '7'))"#))
        #expect(try sql(#"{"table":"messages","after":{"id":7}}"#).contains(#"((t."id") > ('7'))"#))
    }

    /// Ascending, NULL comes last; descending, first.
    @Test func placesAreExactWhereThereAreNulls() throws {
        #expect(
            try sql(#"{"table":"messages","order":"room","after":{"room":1,"id":7}}"#)
                .contains(#"(((t."room" > '1' or t."room" is null)) or (t."room" = '1' and t."id" > '7'))"#))
        #expect(
            try sql(#"{"table":"messages","order":"room","after":{"room":null,"id":7}}"#)
                .contains(#"((t."room" is null and t."id" > '7'))"#))
        #expect(
            try sql(#"{"table":"messages","order":"room.desc","after":{"room":null,"id":7}}"#)
                .contains(#"((t."room" is not null) or (t."room" is null and t."id" < '7'))"#))
    }

    @Test func onlyWhatMayBeReadIsShown() throws {
        #expect(try sql(#"{"table":"messages"}"#, granted: ["id", "body"]).contains(#"select t."id", t."body") as c"#))
        #expect(try sql(#"{"table":"messages","select":["room"]}"#).contains(#"(select t."id", t."room") as c"#))
    }

    @Test(arguments: [
        (#"{"table":"messages","order":"at"}"#, "orders by the column \"at\""),
        (#"{"table":"messages","filter":"at=is.null"}"#, "filters by the column \"at\""),
        (#"{"table":"messages","select":["at"]}"#, "selects the column \"at\""),
    ]) func hiddenColumnsAreRefused(json: String, words: String) {
        let refusal = refusal(of: json, granted: ["id", "body"])
        #expect(refusal?.contains(words) == true, "\(refusal ?? "served")")
        #expect(self.refusal(of: json) == nil)
    }

    @Test(arguments: [
        (#"[]"#, "must be an object"), (#"{"schema":"public"}"#, "name it"), (#"{"table":"*"}"#, "name it"),
        (#"{"table":7}"#, "table must be a string"), (#"{"table":"messages","limit":0}"#, "from 1 to 1000"),
        (#"{"table":"messages","limit":1001}"#, "from 1 to 1000"),
        (#"{"table":"messages","limit":"5"}"#, "from 1 to 1000"),
        (#"{"table":"messages","order":"at.down"}"#, "created_at.desc"),
        (#"{"table":"messages","order":"at,at"}"#, "twice"),
        (#"{"table":"messages","order":"nope"}"#, "does not exist"), (#"{"table":"messages","select":"id"}"#, "a list"),
        (#"{"table":"messages","filter":"nope=eq.1"}"#, "does not exist"),
        (#"{"table":"messages","after":[1]}"#, "must be an object"),
        (#"{"table":"messages","after":{}}"#, "lacks the column \"id\""),
        (#"{"table":"messages","after":{"id":[1]}}"#, "cannot be read behind"),
        (#"{"table":"messages","order":"a,b,c,d,e,f,g,h,i"}"#, "more than 8"),
    ]) func faultsAreSaid(json: String, words: String) {
        let refusal = refusal(of: json)
        #expect(refusal?.contains(words) == true, "\(refusal ?? "served")")
    }

    /// Without a key that may be read no two rows can be told apart, so there is no next page.
    @Test func withoutAKeyThereAreNoPlaces() throws {
        let statement = try RowsStatement(request(#"{"table":"messages"}"#), of: Self.table, granted: ["body"])
        #expect(!statement.hasPlaces)
        #expect(!statement.makeScript(isUTF8: true, bytes: 1, as: "authenticated").sql.contains("order by"))
        #expect(
            refusal(of: #"{"table":"messages","after":{"id":1}}"#, granted: ["body"])?.contains("primary key") == true)
    }
}

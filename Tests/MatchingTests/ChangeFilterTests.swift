import Matching
import Testing

@Suite("The grammar of filters")
struct ChangeFilterTests {
    private func condition(_ text: String) throws -> FilterCondition {
        let conditions = try ChangeFilter(parsing: text).conditions
        try #require(conditions.count == 1)
        return conditions[0]
    }

    @Test(arguments: FilterOperator.allCases.filter { $0 != .inList && $0 != .isKeyword })
    func everyOperatorTakesAValueAndANegation(name: FilterOperator) throws {
        #expect(try condition("c=\(name.rawValue).v") == FilterCondition(column: "c", test: .value(name, "v")))
        #expect(
            try condition("c=not.\(name.rawValue).v")
                == FilterCondition(column: "c", isNegated: true, test: .value(name, "v")))
    }

    @Test(arguments: ["", " ", "\t\n", "\u{00A0}\u{3000}"])
    func blankIsNoFilter(text: String) throws {
        #expect(try ChangeFilter(parsing: text).conditions.isEmpty)
    }

    @Test(arguments: [
        ("name=eq.", ""), (#"name=eq."""#, ""), ("name=eq. a", " a"), ("name=eq.a ", "a"), (#"name=eq." a ""#, " a "),
        (#"name=eq."a,b""#, "a,b"), (#"name=eq."a.b:c(d)""#, "a.b:c(d)"),
        (#"name=eq."she said \"hi\"""#, #"she said "hi""#),
        (#"name=eq."C:\\tmp""#, #"C:\tmp"#), (#"name=eq."C:\new""#, "C:new"), (#"name=eq.C:\tmp"#, #"C:\tmp"#),
        (#"name=eq."unterminated"#, #""unterminated"#), (#"name=eq."ab"cd"#, #""ab"cd"#),
        ("name=eq.O'Brien", "O'Brien"),
        (#"name=eq.5" tall"#, #"5" tall"#), ("name=eq.a.b.c", "a.b.c"), ("name=eq.a=b", "a=b"), ("name=eq.x)", "x)"),
        ("name=eq.(a,b)", "(a,b)"), ("name=eq.not.eq.x", "not.eq.x"), ("  name=eq.a", "a"), ("name=eq.é🦆", "é🦆"),
    ])
    func values(text: String, value: String) throws {
        #expect(try condition(text) == FilterCondition(column: "name", test: .value(.eq, value)))
    }

    @Test(arguments: [
        ("in.(1,2,3)", ["1", "2", "3"]), ("in.()", []), ("in.( )", []), ("in.( a , b )", ["a", "b"]),
        (#"in.("a,b",c)"#, ["a,b", "c"]), (#"in.("a,b","c,d")"#, ["a,b", "c,d"]), (#"in.("")"#, [""]),
        ("in.(null,NULL,x)", [nil, nil, "x"]), (#"in.("null")"#, ["null"]),
        (#"in.("a\"b","c\\d")"#, [#"a"b"#, #"c\d"#]),
        (#"in.(a\,b)"#, ["a,b"]), (#"in.(C:\tmp)"#, ["C:tmp"]), ("in.(O'Brien,Smith)", ["O'Brien", "Smith"]),
        ("in.(f(x),y)", ["f(x)", "y"]), ("in.(a b, c d)", ["a b", "c d"]), (#"in.("a" , "b" )"#, ["a", "b"]),
    ])
    func lists(text: String, members: [String?]) throws {
        #expect(try condition("name=" + text) == FilterCondition(column: "name", test: .list(members)))
    }

    @Test(arguments: FilterCondition.Keyword.allCases)
    func keywords(keyword: FilterCondition.Keyword) throws {
        #expect(try condition("c=is.\(keyword.rawValue)") == FilterCondition(column: "c", test: .keyword(keyword)))
        #expect(try condition("c=is.\"\(keyword.rawValue)\"") == FilterCondition(column: "c", test: .keyword(keyword)))
    }

    @Test func conditionsAreSeparatedByCommasOutsideQuotesAndParentheses() throws {
        let filter = try ChangeFilter(parsing: #"a=eq."x,y", b=in.(1,"2,3") ,c=gt.(4,5),d=eq.z),e=is.null"#)
        #expect(filter.conditions.map(\.column) == ["a", "b", "c", "d", "e"])
        #expect(
            filter.conditions.map(\.test) == [
                .value(.eq, "x,y"), .list(["1", "2,3"]), .value(.gt, "(4,5)"), .value(.eq, "z)"), .keyword(.null),
            ])
    }

    @Test(arguments: [
        ("id=gt.0,", "empty condition"), (",id=gt.0", "empty condition"), ("a=eq.1,,b=eq.2", "empty condition"),
        ("undefined", "form column=operator.value"), ("id=foo.5", #""foo""#), ("=eq.5", "form column=operator.value"),
        ("id=eq", "form column=operator.value"), ("id=", "form column=operator.value"), ("id=EQ.5", #""EQ""#),
        ("id=not.5", "form column=operator.value"), ("id=not.not.eq.5", #""not""#), ("id=in.1,2", "parentheses"),
        ("id=in.(1,2", "parentheses"), ("id=in.(1,,2)", "empty value"), ("id=in.(1,)", "empty value"),
        (#"id=in.("a)"#, "no end"), (#"id=in.("a"b)"#, "goes on"), ("id=is.maybe", "must be null"),
        ("id=is.", "must be null"),
        ("id=is.NULL", "must be null"), ("a(b=eq.1", "form column=operator.value"), ("id=eq.\0", "NUL"),
    ])
    func errorsSayWhatIsWrong(text: String, part: String) throws {
        let message = try #require(Fixture.message { _ = try ChangeFilter(parsing: text) })
        #expect(message.contains(part), "\(message)")
    }

    /// The value of an array or of JSON, cut at its comma; and what PostgREST has and these filters do not.
    @Test(arguments: [
        ("ar=eq.{1,2}", #"write ar=eq."{1,2}""#), ("a=eq.1, ar=not.eq.{1,2,3},b=eq.4", #"write ar=not.eq."{1,2,3}""#),
        (#"j=eq.{"a":1,"b":2}"#, #"write j=eq."{\"a\":1,\"b\":2}""#), ("t=eq.a,b=c", #"write t=eq."a,b=c""#),
        ("or=(a.eq.1,b.eq.2)", "add an entry to postgres_changes for each alternative"),
        ("c=eq.1,not.and=(a.eq.1,b.eq.2)", "is a group, which filters do not have"),
    ])
    func errorsSayWhatToWrite(text: String, part: String) throws {
        let message = try #require(Fixture.message { _ = try ChangeFilter(parsing: text) })
        #expect(message.contains(part), "\(message)")
    }

    @Test(arguments: ["a", "a=eq.1,,b", #"a=eq."1",b"#, "a=in.(1),b"])
    func whereNothingIsCutNothingIsAdvised(text: String) throws {
        #expect(try #require(Fixture.message { _ = try ChangeFilter(parsing: text) }).contains("write ") == false)
    }

    @Test func anOperatorThatIsNoneIsQuotedWithItsCondition() {
        #expect(
            Fixture.message { _ = try ChangeFilter(parsing: "a=eq.1,id=foo.5") }
                == #""foo" in filter condition "id=foo.5" is not an operator; use one of "#
                + "eq, gt, gte, ilike, imatch, in, is, isdistinct, like, lt, lte, match, neq")
    }

    @Test func aListHoldsAHundredValues() throws {
        let hundred = (1...100).map(String.init).joined(separator: ",")
        #expect(throws: Never.self) { try ChangeFilter(parsing: "id=in.(\(hundred))") }
        #expect(
            Fixture.message { _ = try ChangeFilter(parsing: "id=in.(\(hundred),101)") }?.contains("more than 100")
                == true)
    }

    @Test(arguments: [
        ("a=eq.1", "a=eq.1"), (#"a=eq."1""#, "a=eq.1"), (" a=eq.1 , b=not.in.( x , \"y\" )", "a=eq.1,b=not.in.(x,y)"),
        ("a=eq.", #"a=eq."""#), (#"a=eq.C:\tmp"#, #"a=eq."C:\\tmp""#), (#"a=in.("null",null)"#, #"a=in.("null",null)"#),
        ("a=eq. x", #"a=eq." x""#), ("a=is.null", "a=is.null"), ("a=eq.x)", #"a=eq."x)""#), ("a=in.()", "a=in.()"),
    ])
    func canonicalText(text: String, canonical: String) throws {
        #expect(try ChangeFilter(parsing: text).description == canonical)
    }

    @Test func longTextsAreShortenedInMessages() throws {
        let message = try #require(
            Fixture.message { _ = try ChangeFilter(parsing: String(repeating: "x", count: 5000)) })
        #expect(message.utf8.count < 250)
    }
}

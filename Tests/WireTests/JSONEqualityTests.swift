import Testing
import Wire

@Suite struct JSONEqualityTests {
    @Test(arguments: [
        (#"{"a":1,"b":[1,{"c":"x"}]}"#, #"{ "b": [1, {"c":"\u0078"}], "a":1 }"#, true),
        (#"{"a":1}"#, #"{"a":2}"#, false), (#"{"a":1}"#, #"{"a":1,"b":2}"#, false), ("[1,2]", "[2,1]", false),
        (#"{"a":1,"a":2}"#, #"{"a":2}"#, true), ("1.0", "1", false), ("null", "false", false),
        (#""é""#, #""\u00e9""#, true), (#""é""#, #""e\u0301""#, false), ("{}", "[]", false),
    ]) func tellsValuesApart(_ one: String, _ other: String, _ expected: Bool) throws {
        let (a, b) = (try JSON(parsing: Array(one.utf8)), try JSON(parsing: Array(other.utf8)))
        #expect(a.isEqual(to: b) == expected)
        #expect(b.isEqual(to: a) == expected)
    }
}

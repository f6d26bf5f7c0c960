import Matching
import Wire

/// A column of the differential test: its type, how the hub compares it, and values to try.
struct DifferentialColumn {
    let column: Column
    let definition: String
    /// Values for rows, as Postgres reads them.
    let values: [String]
    /// Further values for filters only: other spellings, and values that are none.
    let spellings: [String]

    init(
        _ name: Name, _ type: Name, _ comparison: Comparison, _ definition: String, _ values: [String],
        spellings: [String] = []
    ) {
        column = Column(
            name: name, type: type, sqlType: Name(definition), comparison: comparison, isPrimaryKey: false,
            isReplicaIdentity: false, isString: ["text", "varchar", "bpchar", "name", "citext"].contains(type.text))
        self.definition = definition
        self.values = values
        self.spellings = spellings
    }

    private static let integers = ["0", "1", "-1", "2", "9", "10", "42", "-42", "32767", "-32768", "100"]
    private static let integerSpellings = [
        "007", " 5 ", "+3", "-0", "1.0", "1e2", "abc", "", "0x10", "32768", "2147483648", "-2147483649",
        "9223372036854775808",
        "99999999999999999999999999", "1 2", "--1", "\u{a0}1", "nan",
    ]
    private static let numbers = [
        "0", "0.00", "1", "1.5", "-1.5", "2.25", "1.005", "99999999.99", "-0.01", "0.01", "10", "100", "12345678.90",
    ]
    private static let floats = [
        "0", "-0", "0.1", "0.2", "0.3", "1", "-1", "1e10", "1e-10", "3.4e38", "1e-37", "Infinity", "-Infinity", "NaN",
        "16777217", "0.10000000149011612", "123456.789",
    ]
    private static let numberSpellings = [
        "1.50", "+1", ".5", "5.", "1e2", "1E-2", "1e", "e1", "nan", "NaN", "inf", "infinity", "-infinity", "+infinity",
        "1e400",
        "1e-400", "0e999", "abc", "", " 7 ", "1_000", "0x1F", "1.005", "1e200000", "0.30000000000000004", "3.5e38",
        "1e-46",
        "99999999999999999999999999999999999.5",
    ]
    private static let texts = [
        "", "a", "A", "b", "B", "ab", "aB", "é", "e\u{301}", "z", "Z", "a b", " a", "a ", "100%", "100_", "a\\b", "'",
        "\"", "ß",
        "ss", "🦆", "abc", "abcabc", "null", "ä", "Ä", "_", "%", "\t", "x\ny", "10", "9", "naïve", "aaa",
    ]
    private static let patterns = [
        "a%", "%b", "%a%b%", "_", "__", "%", "", "100\\%", "100\\_", "a\\\\b", "%\\%", "a_c", "ABC", "aBc", "%é", "_%_",
        "^a", "b$",
        "a.*b", "[ab]+", "(a|b)", "a\\b", "\\", "a\\", "[", "(", "*", "%%%", "abc%abc", "\\a", "ä", "%\n%",
    ]
    private static let dates = [
        "2026-01-31", "2026-02-01", "1999-12-31", "2000-02-29", "0001-01-01", "0044-03-15 BC", "10000-01-01",
        "infinity",
        "-infinity", "4713-01-01 BC", "1970-01-01", "5874897-12-31",
    ]
    private static let dateSpellings = [
        "20260131", "Jan 31 2026", "2026-1-31", "2026-02-30", "2026-13-01", "today", "epoch", "INFINITY", "abc", "",
        " 2026-01-31 ",
        "2026-01-31T10:00:00", "31/01/2026", "0000-01-01", "2026-01-31 BC", "2024-02-29", "2023-02-29",
    ]
    private static let times = [
        "2026-01-31 10:00:00", "2026-01-31 10:00:00.000001", "2026-01-31 09:59:59.999999", "1999-12-31 23:59:59",
        "0044-03-15 12:00:00 BC", "10000-01-01 00:00:00", "infinity", "-infinity", "2026-01-31 00:00:00",
        "294276-12-31 23:59:59",
        "4713-01-01 00:00:00 BC", "1900-01-01 00:00:00",
    ]
    private static let timeSpellings = [
        "2026-01-31T10:00:00Z", "2026-01-31 10:00", "2026-01-31T10:00:00.0000005", "2026-01-31",
        "2026-01-31T10:00:00+02:00",
        "2026-01-31 10:00:00+05:30", "2026-01-31T10:00:00-00", "2026-01-31 24:00:00", "2026-01-31 23:59:60",
        "2026-01-31 25:00:00", "2026-01-31T10:00:00 Europe/Berlin", "epoch", "abc", "", "2026-02-29 00:00", "now",
        "2026-01-31T10:00:00+16:00", "2026-01-31T10:00:00.123+00:53:28", "294277-01-01 00:00", "Infinity",
        "2026-01-31t10:00:00z", "2026-01-31T10:00:00+0530", "2026-01-31T10", "2026-01-31T10:00:00,5Z",
    ]
    private static let uuids = [
        "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11",
        "00000000-0000-0000-0000-000000000000",
        "ffffffff-ffff-ffff-ffff-ffffffffffff", "b0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
        "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a12",
    ]
    private static let uuidSpellings = [
        "{a0eebc99-9c0b4ef8-bb6d6bb9-bd380a11}", "a0eebc999c0b4ef8bb6d6bb9bd380a11",
        "a0ee-bc99-9c0b-4ef8-bb6d-6bb9-bd38-0a11",
        "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a1", "{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
        "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}",
        " a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "a0eebc99--9c0b4ef8bb6d6bb9bd380a11", "", "abc",
        "a0eebc999c0b4ef8bb6d6bb9bd380a11-", "-a0eebc999c0b4ef8bb6d6bb9bd380a11",
        "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a1g", "{}",
    ]
    private static let booleanSpellings = [
        "t", "f", "T", "FALSE", "yes", "y", "no", "n", "on", "off", "of", "o", "1", "0", "2", "tru", "truee", " true ",
        "", "fals",
        "ye", "N", "oN",
    ]

    static let all: [DifferentialColumn] = [
        DifferentialColumn("i2", "int2", .decimal, "smallint", integers, spellings: integerSpellings),
        DifferentialColumn(
            "i4", "int4", .decimal, "integer", integers + ["2147483647", "-2147483648"], spellings: integerSpellings),
        DifferentialColumn(
            "i8", "int8", .decimal, "bigint", integers + ["9223372036854775807", "-9223372036854775808"],
            spellings: integerSpellings),
        DifferentialColumn(
            "oid", "oid", .decimal, "oid", ["0", "1", "42", "4294967295"], spellings: integerSpellings + ["-42"]),
        DifferentialColumn(
            "number", "numeric", .decimal, "numeric", numbers + ["NaN", "Infinity", "-Infinity", "1e50", "1e-50"],
            spellings: numberSpellings),
        DifferentialColumn("price", "numeric", .decimal, "numeric(10,2)", numbers, spellings: numberSpellings),
        DifferentialColumn("f4", "float4", .float, "real", floats, spellings: numberSpellings + floats),
        DifferentialColumn(
            "f8", "float8", .float, "double precision", floats + ["1.7e308", "5e-324"],
            spellings: numberSpellings + floats),
        DifferentialColumn("body", "text", .text, "text", texts, spellings: patterns),
        DifferentialColumn("icu", "text", .text, #"text collate "und-x-icu""#, texts, spellings: patterns),
        DifferentialColumn("code", "text", .textByBytes, #"text collate "C""#, texts, spellings: patterns),
        DifferentialColumn(
            "loose", "text", .postgres, "text collate roost_loose", texts, spellings: ["É", "E\u{301}"]),
        DifferentialColumn("short", "varchar", .text, "varchar(10)", texts, spellings: patterns + ["abcabcabcabcabc"]),
        DifferentialColumn(
            "label", "name", .textByBytes, "name", texts, spellings: patterns + [String(repeating: "x", count: 70)]),
        DifferentialColumn(
            "fixed", "bpchar", .postgres, "char(5)", texts.filter { $0.utf8.count < 5 },
            spellings: patterns + ["a    ", "abcdefgh"]),
        DifferentialColumn("folded", "citext", .postgres, "citext", texts, spellings: patterns),
        DifferentialColumn("key", "uuid", .uuid, "uuid", uuids, spellings: uuidSpellings),
        DifferentialColumn("done", "bool", .boolean, "boolean", ["true", "false"], spellings: booleanSpellings),
        DifferentialColumn("born", "date", .date, "date", dates, spellings: dateSpellings),
        DifferentialColumn("at", "timestamp", .timestamp, "timestamp", times, spellings: timeSpellings),
        DifferentialColumn(
            "coarse", "timestamp", .timestamp, "timestamp(0)", times.dropLast(3), spellings: timeSpellings),
        DifferentialColumn(
            "seen", "timestamptz", .timestamptz, "timestamptz", times.dropLast(3),
            spellings: timeSpellings + ["2026-01-31 10:00:00.000001Z"]),
        DifferentialColumn(
            "clock", "time", .canonical, "time", ["10:00", "23:59:59.5", "00:00", "24:00"],
            spellings: ["10:00:00", "10:00 PM", "abc", "25:00"]),
        DifferentialColumn(
            "address", "inet", .canonical, "inet", ["10.0.0.1", "10.0.0.0/8", "::1"],
            spellings: ["10.0.0.1/32", "0:0:0:0:0:0:0:1", "x"]),
        DifferentialColumn(
            "state", "roost_state", .canonical, "roost_state", ["open", "closed", "a \"b\\c"],
            spellings: ["OPEN", "", "gone"]),
        DifferentialColumn(
            "bytes", "bytea", .canonical, "bytea", ["\\x00ff", "\\x", "\\x41"],
            spellings: ["A", "\\xFF", "\\x0", "\\101"]),
        DifferentialColumn(
            "span", "interval", .postgres, "interval", ["1 day", "24 hours", "1 mon"],
            spellings: ["30 days", "x", "P1D"]),
        DifferentialColumn(
            "document", "jsonb", .postgres, "jsonb", [#"{"a":1}"#, "[1,2]", "\"x\"", "1"],
            spellings: [#"{ "a": 1.0 }"#, "{", "nope"]),
        DifferentialColumn(
            "tags", "_int4", .postgres, "integer[]", ["{}", "{1,2}", "{1,NULL}"], spellings: ["{ 1, 2 }", "{", "{x}"]),
        DifferentialColumn(
            "years", "roost_years", .decimal, "roost_years", ["0", "18", "99"], spellings: integerSpellings),
        DifferentialColumn("odd \"name\" (x, y)", "int4", .decimal, "integer", ["1", "2"], spellings: ["3"]),
        // To Unicode, one name.
        DifferentialColumn("caf\u{e9}", "int4", .decimal, "integer", ["1", "2"], spellings: ["3"]),
        DifferentialColumn("cafe\u{301}", "int4", .decimal, "integer", ["1", "2"], spellings: ["3"]),
    ]
}

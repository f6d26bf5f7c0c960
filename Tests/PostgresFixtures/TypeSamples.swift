/// A value of every type, for tests of how rows read.
enum TypeSamples {
    /// What has to be there before a table has columns of these types.
    static let types = """
        create type mood as enum ('so so', 'ok'); create type pair as (a int, b text);
        create domain positive as int check (value > 0); create domain tags as text[]
        """

    /// By type: extreme values, as SQL.
    static let values: [(type: String, values: [String])] = [
        ("int2", ["-32768", "32767"]), ("int4", ["-2147483648", "2147483647"]),
        ("int8", ["-9223372036854775808", "9223372036854775807"]),
        (
            "numeric",
            ["'NaN'", "'Infinity'", "'-Infinity'", "1e-1000", "1e1000", "0.10", "-12345678901234567890.1234567890"]
        ),
        ("numeric(10,3)", ["-9999999.999"]),
        ("float4", ["'NaN'", "'-Infinity'", "3.4028235e38", "1e-45", "'-0'", "0.1"]),
        ("float8", ["'NaN'", "'Infinity'", "1.7976931348623157e308", "5e-324", "'-0'", "0.1"]),
        ("money", ["'-92233720368547758.08'"]), ("bool", ["true", "false"]),
        ("text", ["''", #"E'\x01\t\n\r\b\f"\\/\u007f'"#, "'😀é\u{2028}'", "'null'", "repeat('x', 5000)"]),
        ("varchar(3)", ["'a '"]), ("char(5)", ["'a'"]), (#""char""#, ["'a'", "''"]), ("name", ["repeat('n', 63)"]),
        ("bytea", ["''", #"'\x00ff27'"#]),
        ("date", ["'4713-01-01 BC'", "'5874897-12-31'", "'infinity'", "'-infinity'"]),
        ("time", ["'00:00'", "'24:00'", "'23:59:59.999999'"]), ("timetz", ["'00:00+15:59'", "'24:00-15:59'"]),
        ("timestamp", ["'4713-01-01 BC'", "'294276-12-31 23:59:59.999999'", "'infinity'"]),
        (
            "timestamptz",
            ["'4713-01-02 BC'", "'294276-12-31 00:00'", "'-infinity'", "'2026-03-29 02:30 Europe/Berlin'"]
        ),
        ("interval", ["'178000000 years'", "'-178000000 years'", "'1 mon -1 day 00:00:00.000001'"]),
        ("uuid", ["'ffffffff-ffff-ffff-ffff-ffffffffffff'"]),
        ("json", [#"'{"b": 1, "a":  [null, "\u0000"], "a": 2}'"#, "'null'", "'1e1000'"]),
        ("jsonb", [#"'{"b": 1, "a": [null, {}]}'"#, "'null'", "'1e100'"]),
        ("xml", ["'<a>1</a>'"]), ("bit(3)", ["'101'"]), ("varbit", ["''", "'1010'"]),
        ("inet", ["'::1/64'", "'255.255.255.255/0'"]), ("cidr", ["'10.0.0.0/8'"]),
        ("macaddr", ["'ff:ff:ff:ff:ff:ff'"]), ("macaddr8", ["'ff:ff:ff:ff:ff:ff:ff:ff'"]),
        ("point", ["'(1e308,-1e308)'"]), ("line", ["'{1,2,3}'"]), ("lseg", ["'[(0,0),(1,1)]'"]),
        ("box", ["'(1,1),(0,0)'"]), ("path", ["'[(0,0),(1,1)]'"]), ("polygon", ["'((0,0),(1,1))'"]),
        ("circle", ["'<(0,0),1>'"]),
        ("int4[]", ["'{}'", "'{NULL,1}'", "'[-1:0]={1,2}'", "'{{1,2},{3,4}}'"]),
        ("text[]", [#"'{"a,b","\"",NULL,"null"}'"#]), ("timestamptz[]", ["'{infinity,2026-01-01}'"]),
        ("int4range", ["'empty'", "'(,)'"]), ("tstzrange", ["'[2026-01-01,)'"]),
        ("nummultirange", ["'{[1,2),(3,)}'"]),
        ("tsvector", ["'a:1A b'"]), ("tsquery", ["'a & !b'"]), ("oid", ["4294967295"]),
        ("regclass", ["'pg_class'"]),
        ("xid8", ["'18446744073709551615'"]), ("pg_lsn", ["'FFFFFFFF/FFFFFFFF'"]),
        ("pg_snapshot", ["'10:20:10,14'"]),
        ("jsonpath", [#"'$.a[*] ? (@ > 1)'"#]), ("mood", ["'so so'"]),
        ("pair", ["row(1, 'x\"y')", "row(null, null)"]),
        ("positive", ["1"]), ("tags", ["'{a,b}'"]),
    ]

    /// The part of the table that a server has: multiranges and infinite numbers came with 14.
    static func values(in database: Database) throws -> [(type: String, values: [String])] {
        let isBefore14 = try database.serverVersion() < 140_000
        let hasXML = try database.hasXML()
        return values.compactMap { type, values in
            if type == "nummultirange" && isBefore14 || type == "xml" && !hasXML { return nil }
            let isFinite = type == "numeric" && isBefore14
            return (type, isFinite ? values.filter { !$0.contains("Infinity") } : values)
        }
    }
}

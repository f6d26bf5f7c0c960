/// What the server under test has: its version, and what it was built with. `make test-versions` runs these tests on
/// servers of other versions than Debian's, of which some come without ICU and without extensions.
extension Database {
    /// As `server_version_num` has it: 150018 for 15.18.
    func serverVersion() throws -> Int { Int(try value("show server_version_num") ?? "") ?? 0 }

    func hasICU() throws -> Bool {
        // `unicode` is in every catalog from 16 on.
        try value("select 1 from pg_collation where collname = 'und-x-icu'") != nil
    }

    /// XML is an option of a server's build: every other has the type, and takes no value of it.
    func hasXML() throws -> Bool {
        try value("select 1 from pg_config where name = 'CONFIGURE' and setting like '%--with-libxml%'") != nil
    }

    func hasExtension(_ name: String) throws -> Bool {
        try value("select 1 from pg_available_extensions where name = $1", [name]) != nil
    }
}

import Administration
import Capture
import Postgres
import Schema
import Stores
import Testing

/// Every `.sql` file of the rooms above holds exactly the statements that its enumeration names.
@Suite struct AllStatementsTests {
    static let files: [any NamedStatement.Type] =
        [SchemaSQL.self, CaptureSQL.self] + StoresSQL.files + AdministrationSQL.files

    @Test(
        "SQL is ASCII, comments too: a database in another encoding than UTF-8 refuses all of a script for one character"
    )
    func everyFileIsASCII() {
        #expect(SQLFile.all.count > 10)
        #expect(SQLFile.all.filter { !$0.value.utf8.allSatisfy { $0 < 0x80 } }.keys.sorted() == [])
    }

    @Test func everyFileFits() { #expect(Self.files.flatMap { $0.problems } == []) }
}

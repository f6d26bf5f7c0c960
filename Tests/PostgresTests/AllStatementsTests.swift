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

    @Test func everyFileFits() { #expect(Self.files.flatMap { $0.problems } == []) }
}

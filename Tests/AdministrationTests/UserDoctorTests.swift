import Administration
import ChangeFeed
import Stores
import Testing

@testable import PostgresFixtures

extension CommandTests {
    @Suite struct UserDoctorTests {
        private let statement = PresenceWriter.statementOfSampleChat

        private func finding(_ statement: String, _ database: Database) throws -> Finding {
            try #require(Doctor.examine(usersStatement: statement, conninfo: database.conninfo).first)
        }

        @Test func saysWhatIsWrong() throws {
            let database = try PostgresCluster.shared.migratedDatabase().withUsers()
            #expect(try finding(statement, database).severity == .good)
            #expect(try finding("select 1;", database).message.contains("does not work"))
            #expect(try finding("update users set", database).severity == .error)
            #expect(
                try finding(statement.replacing("public.users", with: "nowhere"), database).message.contains("nowhere"))
            #expect(
                try finding(statement, Database(conninfo: "host=/nowhere")).severity == .error)
            #expect(try database.statuses() == ["offline", "offline", "offline"])
        }

        @Test func rightsAndPolicies() throws {
            let database = try PostgresCluster.shared.migratedDatabase().withUsers()
            try database.run(
                """
                do $$ begin
                    create role status_writer login; exception when duplicate_object then null;
                end $$;
                """)
            let writer = database.role("status_writer")
            #expect(try finding(statement, writer).message.contains("permission denied"))
            try database.run("grant select, update on users to status_writer")
            #expect(try finding(statement, writer).severity == .good)
            try database.run("alter table users enable row level security")
            #expect(try finding(statement, writer).severity == .warning)
            #expect(try finding(statement, database).severity == .good)
        }
    }
}

import Administration
import Streams
import Testing

@testable import PostgresFixtures

extension CommandTests {
    /// What the doctor says of `streams.on_close`.
    @Suite struct CloseDoctorTests {
        private let statement = "insert into reply (name, body, ended) values ($1, $2, $5) returning id"

        private func finding(_ statement: String, _ database: Database) throws -> Finding {
            try #require(
                Doctor.examine(
                    closeRules: [CloseRule(pattern: nil, statement: statement)], conninfo: database.conninfo
                ).first)
        }

        @Test func saysWhatIsWrong() throws {
            let database = try PostgresCluster.shared.database()
            #expect(try finding(statement, database).message.contains("\"reply\" does not exist"))
            try database.run("create table reply (id serial primary key, name text, body text, ended timestamptz)")
            #expect(try finding(statement.replacing("returning id", with: ""), database).severity == .error)
            #expect(try finding(statement + ";", database).severity == .error)
            #expect(try finding("select $1::int + $6", database).severity == .error)
            #expect(try finding(statement, Database(conninfo: "host=/nowhere")).severity == .error)
        }

        /// Whoever closes has rights of their own, so the hub's role needs none.
        @Test func rightsAreThoseOfWhoCloses() throws {
            let database = try PostgresCluster.shared.database()
            try database.run(
                """
                do $$ begin
                    create role service_role; exception when duplicate_object then null;
                end $$;
                create table reply (id serial primary key, name text, body text, ended timestamptz);
                revoke all on reply from service_role;
                """)
            let denied = try finding(statement, database)
            #expect(denied.severity == .warning && denied.message.contains("permission denied"))
            try database.run(
                "grant insert, select on reply to service_role; grant usage on sequence reply_id_seq to service_role")
            #expect(
                try finding(statement, database) == Finding(.good, "streams", "streams.on_close fits the database."))
        }

        /// Each entry is looked at by itself, and with the role that it names.
        @Test func entriesAreNamed() throws {
            let database = try PostgresCluster.shared.database()
            try database.run(
                """
                do $$ begin
                    create role service_role; exception when duplicate_object then null;
                end $$;
                create table reply (id serial primary key, name text, body text, ended timestamptz);
                grant insert, select on reply to service_role; grant usage on sequence reply_id_seq to service_role;
                """)
            let findings = Doctor.examine(
                closeRules: [
                    CloseRule(pattern: "reply/*", statement: statement),
                    CloseRule(pattern: "voice/*", statement: "insert into voice (name) values ($1) returning id"),
                    CloseRule(pattern: "*", statement: statement, reasons: [.aborted], role: "nobody_has_this"),
                ], conninfo: database.conninfo)
            #expect(findings.map(\.severity) == [.good, .error, .error])
            #expect(findings[0].message == "streams.on_close for reply/* fits the database.")
            #expect(findings[1].message.contains("streams.on_close for voice/* does not work"))
            #expect(findings[2].message.contains("nobody_has_this may not run streams.on_close for *"))
        }
    }
}

import ChangeFeed
import Hub
import Stores
import Testing
import Wire

@testable import PostgresFixtures

extension StoreTests {
    /// Who has certainly received what is in the application's own table.
    @Suite struct ReceiptWriterTests {
        private let log = ReceiptLog(tables: ReceiptTables(["public.messages"]))
        private let notes = Notes()

        private static let tables = """
            create table ticks (
                user_id text not null, source text not null, key jsonb not null, at timestamptz not null, kind text not null,
                told int not null default 1, primary key (user_id, source, key)
            );
            """
        /// One that a row which comes twice in it would break.
        private static let statement = """
            insert into ticks as t (user_id, source, key, at, kind)
            select * from unnest($1::text[], $2::text[], $3::jsonb[], $4::timestamptz[], $5::text[])
            on conflict (user_id, source, key) do update set told = t.told + 1, kind = greatest(t.kind, excluded.kind)
            """

        private func database() throws -> Database {
            try PostgresCluster.shared.migratedDatabase().prepared(Self.tables)
        }

        private func prove(_ user: Name, _ id: Int, isShown: Bool = false) {
            log.append([
                .sample(
                    user, ReceiptRow(table: "public.messages", key: Array(#"{"id": \#(id)}"#.utf8)), isShown: isShown)
            ])
        }

        private func running(
            _ database: Database, _ statement: String = statement, _ body: (ReceiptWriter) throws -> Void
        ) rethrows {
            var timing = ReceiptTiming()
            timing.interval = .milliseconds(20)
            timing.firstRetry = .milliseconds(50)
            let writer = ReceiptWriter(
                conninfo: database.conninfo, statement: statement, log: log, logger: .noting(notes), timing: timing)
            writer.start()
            defer { writer.stop() }
            try body(writer)
        }

        private func settle() throws { try eventually("all is written") { log.counts.waiting == 0 } }

        @Test("A user and a row come once in one statement, and shown is more than delivered")
        func writes() throws {
            let database = try database()
            prove("ann", 1)
            prove("ann", 1, isShown: true)
            prove("ann", 1)
            prove("bob\u{0}", 1)
            prove("it's {\"bob\"}", 2)
            try running(database) { writer in
                try settle()
                prove("ann", 1)
                try settle()
                #expect(writer.statistics.proven == 6)
            }
            #expect(
                try database.values(
                    "select user_id || ' ' || (key ->> 'id') || ' ' || kind || ' ' || told from ticks order by 1")
                    == ["ann 1 shown 2", "it's {\"bob\"} 2 delivered 1"])
            #expect(
                try database.values("select distinct (extract(epoch from at) * 1000)::bigint::text from ticks") == [
                    "1700000000123"
                ])
            #expect(notes.all.isEmpty)
        }

        @Test("A receipt that is refused does not stop the others, and is not tried again")
        func refused() throws {
            let database = try database()
            try database.run("alter table ticks add check (key <> '{\"id\": 500}')")
            for id in 1...3000 { prove("ann", id) }
            try running(database) { writer in
                try settle()
                try eventually("it is counted") { writer.statistics.refused == 1 }
            }
            #expect(try database.values("select count(*)::text from ticks") == ["2999"])
            #expect(notes.all.count == 1)
        }

        @Test("A receipt whose row is locked does not keep the others, and is written when it is free")
        func locked() throws {
            let database = try database()
            try database.run("insert into ticks values ('ann', 'public.messages', '{\"id\": 7}', now(), 'delivered')")
            let other = try database.session()
            try other.runScript("begin; update ticks set told = 0")
            for id in 1...20 { prove("ann", id) }
            try running(database) { _ in
                try eventually("the others are written") {
                    try database.values("select count(*)::text from ticks") == ["20"]
                }
                #expect(log.counts.waiting == 1)
                try other.runScript("commit")
                try settle()
            }
            #expect(try database.values("select told::text from ticks where key = '{\"id\": 7}'") == ["1"])
        }

        @Test("A statement that does not work loses nothing: what waits is written when it does")
        func broken() throws {
            let database = try database()
            try database.run("alter table ticks rename to away")
            for id in 1...10 { prove("ann", id) }
            try running(database) { writer in
                try eventually("it is noticed") { writer.statistics.failures > 0 }
                #expect(log.counts.waiting == 10)
                try database.run("alter table away rename to ticks")
                try settle()
            }
            #expect(try database.values("select count(*)::text from ticks") == ["10"])
        }

        @Test("What waits when the hub stops is written")
        func stop() throws {
            let database = try database()
            prove("ann", 0)
            try running(database) { writer in
                try eventually("it is connected") { writer.statistics.batches > 0 }
                for id in 1...5000 { prove("ann", id) }
            }
            #expect(try database.values("select count(*)::text from ticks") == ["5001"])
        }

        @Test("The sample chat's statement writes receipts of what others wrote, once")
        func sampleChat() throws {
            let stage = try PushStage.chat()
            try stage.database.run(
                """
                create table read_receipts (
                    message_id bigint, user_id uuid, conversation_id uuid, delivered_at timestamptz, primary key (message_id, user_id)
                );
                insert into messages (id, conversation_id, sender_id, body) values (7, '\(PushStage.room)', '\(Database.ann)', 'x');
                """)
            for user in [Database.ann, Database.bob, "service", "\(Database.bob.uppercased())"] { prove(Name(user), 7) }
            try running(stage.database, ReceiptWriter.statementOfSampleChat) { _ in try settle() }
            #expect(try stage.database.values("select user_id::text from read_receipts") == [Database.bob])
            #expect(notes.all.isEmpty)
        }
    }
}

extension Database {
    func values(_ sql: String) throws -> [String] { try session().queryRows(sql).map { $0[0] ?? "null" } }
}

extension Receipt {
    fileprivate static func sample(_ user: Name, _ row: ReceiptRow, isShown: Bool) -> Receipt {
        Receipt(user: user, row: row, isShown: isShown, at: 1_700_000_000_123, mark: 0)
    }
}

import ChangeFeed
import Hub
import Matching
import Postgres
import Testing
import Wire

@testable import PostgresFixtures

extension FeedTests {
    @Suite struct CatalogTests {
        let database: Database
        /// Columns of types and collations that not every server has, by name: type.
        private let extras: [String: String]

        init() throws {
            let empty = try PostgresCluster.shared.database()
            var (extras, script) = ([String: String](), "")
            if try empty.hasExtension("citext") {
                extras["ci"] = "citext"
                extras["mail"] = "address"
                script += "create extension citext; create domain address as citext check (value ~ '@');"
            }
            if try empty.hasICU() {
                extras["l"] = "text collate loose"
                script += "create collation loose (provider = icu, locale = 'und', deterministic = false);"
            }
            self.extras = extras
            database = try empty.prepared(
                """
                \(script)
                create type mood as enum ('sad', 'glad');
                create domain positive as int check (value > 0);
                create table kinds (
                    i int8, n numeric(9, 2), f float4, t text, c text collate "C", v varchar(9),
                    nm name, u uuid, b bool, d date, ts timestamp, tz timestamptz, tm time, e mood, by bytea, j jsonb,
                    a int[], ch char(3), p positive, iv interval, x inet,
                    \(extras.map { "\($0) \($1)," }.joined()) primary key (u, i)
                );
                create table plain (a int, b int not null unique, c int, primary key (a) include (c));
                create table full_ (like plain including all); alter table full_ replica identity full;
                create table idx (like plain); create unique index i on idx (b);
                alter table idx replica identity using index i;
                create table none_ (like plain including all); alter table none_ replica identity nothing;
                """, watching: "kinds", "plain", "full_", "idx", "none_")
        }

        @Test("a session reads the same version by a plan that it keeps, and without the right to keep one")
        func versionWithItsPlan() throws {
            let session = try PostgresConnection(database.conninfo)
            func read(_ expression: String) throws -> String? { try session.query("select \(expression)").text(0, 0) }
            let kept = try CatalogReader.compileVersion(on: session)
            #expect(kept.hasPrefix("pg_temp."))
            let before = try read(kept)
            #expect(try before == CatalogReader.version(from: session))
            try database.run("alter table plain add d int")
            let after = try read(kept)
            #expect(try after != before && after == CatalogReader.version(from: session))
            try database.run(
                """
                do $$ begin create role without_temporary; exception when duplicate_object then null; end $$;
                grant usage on schema roost to without_temporary;
                grant select on all tables in schema roost to without_temporary;
                do $$ begin execute format('revoke temporary on database %I from public', current_database()); end $$
                """)
            try session.runScript("set role without_temporary")
            let asked = try CatalogReader.compileVersion(on: session)
            #expect(try read(asked) == CatalogReader.version(from: session))
        }

        @Test func comparisons() throws {
            try database.withFeed { _, collector in
                let table = try #require(collector.catalog.table(schema: "public", name: "kinds"))
                let found = Dictionary(uniqueKeysWithValues: table.columns.map { ($0.name.text, $0.comparison) })
                var expected: [String: Comparison] = [
                    "i": .decimal, "n": .decimal, "f": .float, "t": .text, "c": .textByBytes, "v": .text,
                    "nm": .textByBytes, "u": .uuid, "b": .boolean, "d": .date, "ts": .timestamp, "tz": .timestamptz,
                    "tm": .canonical, "e": .canonical, "by": .canonical, "j": .postgres, "a": .postgres,
                    "ch": .postgres, "p": .decimal, "iv": .postgres, "x": .canonical,
                ]
                for column in extras.keys { expected[column] = .postgres }
                #expect(found == expected)
                #expect(
                    Set(table.columns.filter(\.isString).map(\.name.text))
                        == Set(["t", "c", "v", "nm", "ch"]).union(extras.keys))
                #expect(table.columns.filter(\.isPrimaryKey).map(\.name) == ["i", "u"])
                #expect(table.column("a")?.type == "_int4")
                #expect(table.column("n")?.sqlType == "numeric(9,2)")
            }
        }

        @Test(arguments: [("plain", ["a"]), ("full_", ["a", "b", "c"]), ("idx", ["b"]), ("none_", [])])
        func replicaIdentity(table: String, columns: [String]) throws {
            try database.withFeed { _, collector in
                let found = try #require(collector.catalog.table(schema: "public", name: Name(table)))
                #expect(found.columns.filter(\.isReplicaIdentity).map(\.name.text) == columns)
            }
        }

        @Test func workAsksTheDatabase() throws {
            try database.withFeed { feed, collector in
                let answers = Notes()
                feed.postIdleWork { context in
                    answers.add((try? context.query("select 1 = $1::int", ["1"]))?[0][0] ?? "failed")
                    answers.add("\((try? context.tableExists(schema: "public", name: "plain")) ?? false)")
                    do { _ = try context.query("select 'x'::int") } catch { answers.add("\(error)") }
                }
                feed.postWork { answers.add("\($0.canQuery)") }
                try eventually("answers") { answers.all.count == 4 }
                #expect(answers.all.contains("t") && answers.all.contains("true") && answers.all.contains("false"))
                #expect(answers.all.contains { $0.contains("invalid input syntax") })
                #expect(feed.status == .ready)
            }
        }
    }
}

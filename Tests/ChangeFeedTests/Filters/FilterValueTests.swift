import ChangeFeed
import Foundation
import Hub
import TestSupport
import Testing

@testable import PostgresFixtures

extension FeedTests {
    /// What values of filters cost when Postgres reads them as a column's type, and what they tell.
    @Suite struct FilterValueTests {
        /// Values that are long, deep, or short for something long; names of what the subscriber has no business with.
        private static let values: [(name: String, text: String)] = [
            ("many digits", String(repeating: "9", count: 2000)), ("a number of 131,072 digits", "1e131071"),
            ("brackets", String(repeating: "[", count: 2000)), ("braces", String(repeating: "{", count: 2000)),
            ("parentheses", String(repeating: "(", count: 2000)),
            ("deep json", String(repeating: "[", count: 1000) + String(repeating: "]", count: 1000)),
            ("open elements", String(repeating: "<a>", count: 600)),
            (
                "entities of entities",
                "<!DOCTYPE a [<!ENTITY b '" + String(repeating: "x", count: 50) + "'>"
                    + zip("bcdefgh", "cdefghi").map { one, next in
                        "<!ENTITY \(next) '" + String(repeating: "&\(one);", count: 20) + "'>"
                    }.joined() + "]><a>&i;</a>"
            ),
            ("a file as an entity", "<!DOCTYPE a [<!ENTITY b SYSTEM 'file:///etc/passwd'>]><a>&b;</a>"),
            ("a file as a time zone", "2026-01-01 00:00 ../../../../etc/passwd"),
            ("negations", String(repeating: "!", count: 2000) + "a"),
            ("conjunctions", String(repeating: "a&", count: 900) + "a"),
            ("words", (0..<400).map(String.init).joined(separator: " ")),
            ("an expression in a path", #"$ ? (@ like_regex "((a{100}){100}){20}")"#),
            ("a sparse array", "[1:1000000000]={1}"), ("dimensions", "{{{{{{1}}}}}}"),
            ("elements", "{" + Array(repeating: "1", count: 900).joined(separator: ",") + "}"),
            ("ranges", "{" + (0..<150).map { "[\(2 * $0),\(2 * $0 + 1))" }.joined(separator: ",") + "}"),
            ("points", "(" + Array(repeating: "(1,1)", count: 300).joined(separator: ",") + ")"),
            ("bits", String(repeating: "1", count: 2000)), ("years", String(repeating: "1 year ", count: 250)),
            ("a table of the system", "pg_authid"), ("a hidden table", "vault.secrets"), ("its number", "1260"),
            ("a hidden function", "vault.open"), ("a row", "(1,x)"), ("a slow row", "(7,x)"), ("a slow element", "{7}"),
        ]

        private static let more = [
            "regproc", "regprocedure", "regtype", "regrole", "regnamespace", "slow_row", "slow[]", "slow", "numeric[]",
            "xid", "tid",
        ]

        /// Every type of the table of types, and those whose input looks into the catalog or runs a function.
        @Test func noValueOfAnyTypeCostsMuchOrTellsAnything() throws {
            let database = try PostgresCluster.shared.database()
            let types = try TypeSamples.values(in: database).map(\.type) + Self.more
            let columns = types.indices.map { "c\($0) \(types[$0])" }.joined(separator: ", ")
            try database.run(
                """
                do $$ begin
                    if to_regrole('authenticated') is null then create role authenticated; end if;
                exception when duplicate_object then null;
                end $$;
                create type mood as enum ('so so', 'ok'); create type pair as (a int, b text);
                create domain positive as int check (value > 0); create domain tags as text[];
                create function takes_time(int) returns boolean language plpgsql as
                    $$ begin if $1 = 7 then perform pg_sleep(60); end if; return true; end $$;
                create domain slow as int check (takes_time(value)); create type slow_row as (a slow, b text);
                create schema vault; create table vault.secrets (a int);
                create function vault.open() returns int language sql as 'select 1';
                """)
            _ = try database.prepared(
                """
                create table t (id int primary key, \(columns)); create table marker (text text);
                grant select on t, marker to authenticated;
                """, watching: "t", "marker")
            var limits = ConditionLimits()
            limits.validation = .milliseconds(300)
            try SubscriberStage.with(database, filters: limits) { stage in
                _ = try stage.join(#"{"event":"*","schema":"public","table":"marker"}"#, as: "marker")
                var slow: Set<String> = []
                for (column, type) in types.enumerated() {
                    for (name, text) in Self.values {
                        let filter =
                            "c\(column)=eq.\"" + text.replacing(#"\"#, with: #"\\"#).replacing("\"", with: #"\""#)
                            + "\""
                        let entry = String(
                            decoding: try JSONSerialization.data(
                                withJSONObject: ["event": "*", "schema": "public", "table": "t", "filter": filter]),
                            as: UTF8.self)
                        let elapsed = Elapsed()
                        let group = try stage.join(entry, as: "eve")
                        if elapsed.time > .milliseconds(250) { slow.insert("\(type): \(name)") }
                        #expect(elapsed.isAtMost(.seconds(3)), "\(type), \(name): \(elapsed.time)")
                        let said = stage.refusal(group) ?? ""
                        for secret in ["root:", "does not exist: vault", "relation", "function \"vault"] {
                            #expect(!said.contains(secret), "\(type), \(name): \(said)")
                        }
                    }
                }
                // Elements and fields of a domain are checked by the application's functions, which the server stops.
                #expect(slow.contains("slow_row: a slow row") || slow.contains("slow[]: a slow element"), "\(slow)")
                print("values that took longer than 250 ms: \(slow.sorted())")
                try database.run("insert into t (id) values (1)")
                try stage.settle(database)
                #expect(stage.statistics.connections == 1)
            }
        }

        /// 131,072 digits for eight characters, which a filter could have 2,000 times: Postgres gives none of them back.
        @Test func shortValuesThatAreLongAreRefused() throws {
            let database = try PostgresCluster.shared.migratedDatabase().chat()
            try database.run(
                "alter table messages add column amount numeric")
            try SubscriberStage.with(database) { stage in
                func entry(_ filter: String) -> String {
                    #"{"event":"*","schema":"public","table":"messages","filter":"\#(filter)"}"#
                }
                let long = try stage.join(entry("amount=in.(1e131071,1e131070)"), as: "ann")
                #expect(stage.refusal(long)?.contains("its value cannot be read") == true)
                let fine = try stage.join(entry("amount=eq.1e1001"), as: "ann")
                #expect(stage.refusal(fine) == nil)
            }
        }
    }
}

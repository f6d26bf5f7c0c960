import Administration
import ChangeFeed
import Postgres
import Testing

@testable import PostgresFixtures

extension FeedTests {
    /// What realtime.send(), send_binary() and broadcast_changes() write, and what an insert into realtime.messages does.
    @Suite struct SendTests {
        let database: Database

        init() throws {
            database = try PostgresCluster.shared.database()
            try Migrator.migrate(conninfo: database.conninfo)
        }

        @Test func sends() throws {
            try database.run(
                """
                begin;
                select realtime.send('{"n": 1}', 'first', 'room');
                select realtime.send('{"id": "own"}', 'second', 'room', false);
                select realtime.send_binary('\\x00ff', 'third', 'room');
                commit;
                """)
            #expect(
                try database.outbox("event", "topic", "private", "extension") == [
                    "M realtime.messages first room true broadcast", "M realtime.messages second room false broadcast",
                    "M realtime.messages third room true broadcast",
                ])
            let rows = try database.session().queryRows(
                """
                select record -> 'payload' ->> 'n', record -> 'payload' ->> 'id' = record ->> 'id',
                       record -> 'payload' ->> 'id', record ->> 'binary_payload'
                from roost.change order by id
                """)
            #expect(rows[0][0] == "1" && rows[0][1] == "t")
            #expect(rows[1][2] == "own" && rows[1][1] == "f")
            #expect(rows[2][3] == "\\x00ff")
            // As the table lists them: that is what replays go by.
            let order = "select string_agg(event, ' ' order by inserted_at) from realtime.messages"
            #expect(try database.value(order) == "first second third")
        }

        @Test func topicIsSetForPoliciesOfTheSameTransaction() throws {
            #expect(
                try database.value(
                    """
                    with sent as materialized (select realtime.send('{}', 'e', 'room'))
                    select current_setting('realtime.topic') from sent
                    """) == "room")
            #expect(try database.value("select realtime.topic()") == nil)
        }

        @Test(arguments: [
            ("send('[1]', 'e', 'refused')", "the payload must be a JSON object"),
            ("send(null, 'e', 'refused')", "the payload must be a JSON object"),
            ("send('\"id\"', 'e', 'refused')", "the payload must be a JSON object"),
            ("send('{}', 'e', null)", "null value in column \"topic\""),
            (
                "send(jsonb_build_object('x', repeat('y', 3000000)), 'e', 'refused')",
                "the payload is over 3,000,000 bytes"
            ),
            ("send_binary(null, 'e', 'refused')", "the payload is null"),
            (
                "send_binary(convert_to(repeat('y', 3000001), 'UTF8'), 'e', 'refused')",
                "the payload is over 3,000,000 bytes"
            ),
        ])
        func failuresAreWarnings(call: String, reason: String) throws {
            let before = try PostgresCluster.shared.log.utf8.count
            try database.run(
                "create table witness (n int); begin; insert into witness values (1); select realtime.\(call); commit")
            #expect(try database.value("select count(*) from witness") == "1")
            #expect(try database.outbox().isEmpty)
            #expect(try database.value("select count(*) from realtime.messages") == "0")
            let said = try PostgresCluster.shared.log.utf8.dropFirst(before)
            #expect(String(decoding: said, as: UTF8.self).contains("WarnSendingBroadcastMessage: \(reason)"))
        }

        @Test func largestPayloads() throws {
            // {"x": "…", "id": "…"}: 55 bytes around the text.
            try database.run(
                """
                select realtime.send(jsonb_build_object('x', repeat('y', 3000000 - 55)), 'json', 'room');
                select realtime.send_binary(convert_to(repeat('y', 3000000), 'UTF8'), 'binary', 'room');
                """)
            #expect(try database.outbox("event") == ["M realtime.messages json", "M realtime.messages binary"])
            #expect(
                try database.value("select octet_length(record ->> 'payload') from roost.change order by id limit 1")
                    == "3000000")
        }

        @Test func whatIsTooLargeForClientsIsToldAndNotKept() throws {
            let before = try PostgresCluster.shared.log.utf8.count
            try database.run(
                """
                insert into realtime.messages (topic, extension, event, payload) values
                    ('room', 'broadcast', 'large', jsonb_build_object('x', repeat('y', 3000000))),
                    ('room', 'broadcast', 'small', '{"a": 1}');
                insert into realtime.messages (topic, extension, event, binary_payload)
                values ('room', 'broadcast', 'binary', convert_to(repeat('y', 3000001), 'UTF8'));
                """)
            #expect(
                try database.outbox("event", "topic", "payload") == [
                    "M realtime.messages reduced large room null", #"M realtime.messages small room {"a": 1}"#,
                    "M realtime.messages reduced binary room null",
                ])
            let said = try PostgresCluster.shared.log.utf8.dropFirst(before)
            #expect(String(decoding: said, as: UTF8.self).contains("over 3,000,000 bytes and reach no client"))
        }

        @Test func onlyBroadcastsCount() throws {
            try database.run(
                "insert into realtime.messages (topic, extension) values ('a', 'presence'), ('b', 'broadcast'), ('c', 'x')"
            )
            try database.run(
                "begin; insert into realtime.messages (topic, extension) values ('probe', 'broadcast'); rollback")
            #expect(try database.outbox("topic") == ["M realtime.messages b"])
        }

        @Test func oneOrderWithRowsOfTheTransaction() throws {
            try database.run("create table t (id int primary key)")
            try Watcher.watch("t", conninfo: database.conninfo)
            try database.run(
                """
                begin; insert into t values (1); select realtime.send('{"id": 2}', 'e', 'r'); insert into t values (3);
                commit
                """)
            #expect(try database.outbox().map { $0.prefix(1) } == ["I", "M", "I"])
        }

        @Test func hostileWriters() throws {
            try database.run(
                """
                do $$ begin create role sender login; exception when duplicate_object then null; end $$;
                create policy anything on realtime.messages for insert to sender with check (true);
                create schema evil; grant usage, create on schema evil to sender;
                """)
            let sender = database.role("sender")
            try sender.run(
                """
                create function evil.yes(text, text) returns bool language sql as 'select false';
                create operator evil.= (leftarg = text, rightarg = text, function = evil.yes);
                create function evil.row_to_json(anyelement) returns json language sql as $$ select '"evil"'::json $$;
                set search_path = evil, pg_catalog; set bytea_output = 'escape'; set "TimeZone" = 'Asia/Tokyo';
                select realtime.send('{"id": 1}', 'e', 'room'); select realtime.send_binary('\\xff', 'e', 'room');
                """)
            #expect(
                try database.outbox("payload", "binary_payload") == [
                    #"M realtime.messages {"id": 1} null"#, #"M realtime.messages null \xff"#,
                ])
            let late =
                "select count(*) from realtime.messages where abs(extract(epoch from "
                + "inserted_at - clock_timestamp() at time zone 'UTC')) > 60"
            #expect(try database.value(late) == "0")
            #expect(throws: PostgresError.self) {
                try sender.run(
                    """
                    create temp table x (extension text);
                    create trigger x after insert on x referencing new table as roost_new
                    for each statement execute function roost.on_message()
                    """)
            }
            #expect(throws: PostgresError.self) {
                try sender.run("insert into roost.change (relid, op) values (1, 'M')")
            }
        }

        @Test func aSenderWithoutAPolicyIsWarnedAndGoesOn() throws {
            try database.run(
                "do $$ begin create role outsider login; exception when duplicate_object then null; end $$")
            let before = try PostgresCluster.shared.log.utf8.count
            try database.role("outsider").run("select realtime.send('{}', 'e', 'room')")
            #expect(try database.outbox().isEmpty)
            let said = try PostgresCluster.shared.log.utf8.dropFirst(before)
            #expect(String(decoding: said, as: UTF8.self).contains("row-level security policy for table \"messages\""))
        }

        @Test func broadcastChanges() throws {
            try database.run(
                """
                create table t (id int primary key, body text); create table other (n int, id int primary key);
                create function tell() returns trigger language plpgsql as $$
                begin
                    perform realtime.broadcast_changes(
                        'room:' || coalesce(new.id, old.id), tg_op, tg_op, tg_table_name, tg_table_schema, new, old);
                    return null;
                end $$;
                create trigger tell after insert or update or delete on t for each row execute function tell();
                create trigger tell after insert or update or delete on other for each row execute function tell();
                insert into t values (1, 'a'); update t set body = 'b'; delete from t; insert into other values (9, 1);
                """)
            let rows = try database.session().queryRows(
                """
                select record ->> 'topic', record ->> 'event', record ->> 'private', (record ->> 'payload')::jsonb - 'id'
                from roost.change order by id
                """)
            func line(_ operation: String, _ record: String, _ old: String, table: String = "t") -> String {
                #"room:1 \#(operation) true {"table": "\#(table)", "record": \#(record), "schema": "public", "#
                    + #""operation": "\#(operation)", "old_record": \#(old)}"#
            }
            let (a, b) = (#"{"id": 1, "body": "a"}"#, #"{"id": 1, "body": "b"}"#)
            let expected: [String] = [
                line("INSERT", a, "null"), line("UPDATE", b, a), line("DELETE", "null", b),
                line("INSERT", #"{"n": 9, "id": 1}"#, "null", table: "other"),
            ]
            let lines: [String] = rows.map { $0.compactMap { $0 }.joined(separator: " ") }
            #expect(lines == expected)
        }

        @Test(arguments: [
            ("'INSERT'", "'STATEMENT'", "FOR EACH ROW"), ("'TRUNCATE'", "'ROW'", "not TRUNCATE"),
            ("null", "'ROW'", "not"),
        ])
        func broadcastChangesRefuses(operation: String, level: String, reason: String) throws {
            #expect {
                try database.run(
                    "select realtime.broadcast_changes('t', 'e', \(operation), 't', 's', row(1), row(2), \(level))")
            } throws: { "\($0)".contains(reason) }
            #expect(try database.outbox().isEmpty)
        }

        @Test func sleepingHubIsRung() throws {
            try database.withFeed { feed, _ in
                try eventually("the feed sleeps") { feed.statistics.dozes > 0 }
                let rings = feed.statistics.rings
                try database.run("select realtime.send('{}', 'e', 'room')")
                try eventually("a ring") { feed.statistics.rings > rings }
            }
        }

        @Test func ownMessagesEndWithTheRetention() throws {
            try database.run(
                """
                insert into realtime.messages (topic, extension) select 'old', 'broadcast' from generate_series(1, 6000);
                update realtime.messages set inserted_at = inserted_at - interval '1 hour 1 minute';
                insert into realtime.messages (topic, extension) values ('young', 'broadcast');
                """)
            #expect(try database.value("select roost.prune_messages(3600)") == "5000")
            #expect(try database.value("select roost.prune_messages(3600)") == "1000")
            #expect(try database.value("select roost.prune_messages(3600)") == "0")
            #expect(try database.value("select string_agg(topic, '') from realtime.messages") == "young")
            try database.run("drop schema realtime cascade")
            #expect(try database.value("select roost.prune_messages(3600)") == "0")
        }

        @Test func whatHasExpiredIsDeletedAndWhatWasBroadcastIsNotBroadcastAgain() throws {
            try database.run(
                """
                insert into realtime.messages (topic, extension, skip_broadcast, expires_at)
                select 'due', 'broadcast', true, now() at time zone 'UTC' from generate_series(1, 5500);
                insert into realtime.messages (topic, extension, skip_broadcast, expires_at)
                values ('later', 'broadcast', true, now() at time zone 'UTC' + interval '1 minute'), ('never', 'broadcast', true, null);
                """)
            #expect(try database.outbox().isEmpty)
            #expect(try database.value("select roost.prune_messages(3600)") == "5000", "more may be")
            #expect(try database.value("select roost.prune_messages(3600)") == "500")
            #expect(
                try database.value("select string_agg(topic, ' ' order by topic) from realtime.messages")
                    == "later never")
        }
    }
}

import Glibc
import Hub
import Listening
import Logging
import Postgres
import Testing

@testable import PostgresFixtures

/// The session that listens, against a real Postgres.
@Suite(.serialized) struct NotificationListenerTests {
    let database: Database
    let loops = LoopsInPlace()

    init() throws { database = try PostgresCluster.shared.database() }

    private func listening(
        _ mappings: String = "Messages -> room:{id} / new", logger: Logger = .silent,
        bounds change: (inout NotificationListener.Bounds) -> Void = { _ in },
        _ body: (NotificationListener) throws -> Void
    ) throws {
        var bounds = NotificationListener.Bounds()
        bounds.firstRetry = .milliseconds(100)
        change(&bounds)
        let listener = NotificationListener(
            conninfo: database.conninfo, mappings: try NotificationMapping.parseList(mappings), sink: loops,
            logger: logger,
            bounds: bounds)
        listener.start()
        defer { listener.stop() }
        try eventually("it listens") { listener.statistics.isListening }
        try body(listener)
    }

    private func notify(_ payloads: String..., channel: String = "Messages") throws {
        let session = try database.session()
        for payload in payloads { _ = try session.queryRows("select pg_notify($1, $2)", [channel, payload]) }
    }

    private var backend: Int32 {
        get throws {
            let process = try database.value(
                "select pid from pg_stat_activity where application_name = 'roost notifications' and datname = current_database()"
            )
            return try #require(process.flatMap { Int32($0) })
        }
    }

    @Test func everyLoopIsHandedAllThatIsCommittedInOrder() throws {
        try listening { listener in
            let session = try database.session()
            try session.runScript(
                "begin; select pg_notify('Messages', '{\"id\":0}'); rollback; notify messages, '{\"id\":0}'")
            try session.runScript(
                #"do $$ begin for n in 1..1000 loop perform pg_notify('Messages', '{"id":' || n || '}'); end loop; end $$"#
            )
            let expected = ["gap"] + (1...1000).map { #"private realtime:room:\#($0) {"id":\#($0)}"# }
            for loop in 0..<2 {
                try eventually("1,000 of \(loops.lines(loop).count)") { loops.lines(loop).count >= expected.count }
                #expect(loops.lines(loop) == expected)
            }
            // It counts what it has handed on.
            try eventually("all counted") { listener.statistics.sent == 1000 }
            #expect(listener.statistics.gaps == 0)
        }
    }

    @Test func aChannelMayGoToSeveralTopics() throws {
        try listening("Messages -> room:{id} / e, Messages -> public all / e, jobs -> jobs / e") { _ in
            try notify(#"{"id":"x"}"#, "text")
            try notify("", channel: "jobs")
            let expected = [
                #"private realtime:room:x {"id":"x"}"#, #"realtime:all {"id":"x"}"#,
                #"realtime:all {"payload":"text"}"#,
                #"private realtime:jobs {"payload":""}"#,
            ]
            try eventually("all of \(loops.lines())") { loops.lines().count > expected.count }
            #expect(loops.lines().dropFirst() == expected[...])
        }
    }

    @Test func afterASessionThatWasKilledMembersAreToldAndItGoesOn() throws {
        try listening { listener in
            try notify(#"{"id":1}"#)
            try eventually("the first") { loops.lines().count == 2 }
            let killed = try backend
            try database.run("select pg_terminate_backend(\(killed))")
            try eventually("the word of the gap") { loops.lines(0).count == 3 && loops.lines(1).count == 3 }
            // The one that was killed is listed until it has ended.
            try eventually("another session") { try backend != killed }
            try notify(#"{"id":2}"#)
            try eventually("the second") { loops.lines().count == 4 }
            #expect(
                loops.lines() == [
                    "gap", #"private realtime:room:1 {"id":1}"#, "gap", #"private realtime:room:2 {"id":2}"#,
                ])
            try eventually("figures") { listener.statistics.gaps == 1 && listener.statistics.sent == 2 }
        }
    }

    @Test func aSessionThatHangsIsNoticed() throws {
        try listening(bounds: { bounds in
            bounds.check = .milliseconds(100)
            // On a busy machine one that lives takes longer than some tenths of a second, and what was said meanwhile would be in a gap.
            bounds.patience = .seconds(2)
        }) { listener in
            let frozen = try backend
            kill(frozen, SIGSTOP)
            defer { kill(frozen, SIGCONT) }
            try eventually("another session") { listener.statistics.gaps >= 1 }
            try notify(#"{"id":1}"#)
            try eventually("the message") { loops.lines().contains(#"private realtime:room:1 {"id":1}"#) }
        }
    }

    @Test func aHostileFloodCostsBoundedMemoryAndOneLineOfTheLog() throws {
        let notes = Notes()
        try listening("Messages -> {id} / new", logger: .noting(notes), bounds: { $0.backlog = 100_000 }) {
            listener in
            loops.hold()
            let script =
                #"do $$ begin for n in 1..2000 loop perform pg_notify('Messages', '{"id":' || n || ',"pad":"' || "#
                + #"repeat('x', 7000) || '"}'); perform pg_notify('Messages', 'no id ' || n); "#
                + #"perform pg_notify('Messages', '{"id":"","n":' || n || '}'); end loop; end $$"#
            try database.run(script)
            try eventually("all are read") { listener.statistics.impossible == 2000 }
            #expect(listener.statistics.dropped > 0 && listener.statistics.withoutField == 2000)
            // What arrives at once counts as one, and is bounded by what libpq reads at once.
            #expect(loops.lines().count < 400, "\(loops.lines().count) of 2,000 are held")
            let handed = loops.lines().count
            loops.release()
            try eventually("the word of the gap") {
                loops.lines(0).count == handed + 1 && loops.lines(1).last == "gap"
            }
            try notify(#"{"id":"after"}"#)
            try eventually("what comes then") {
                loops.lines().last == #"private realtime:after {"id":"after"}"#
            }
            let about = notes.all.filter { $0.contains("channel Messages") }
            #expect(about.count == 1, "\(about)")
            #expect(!notes.all.contains { $0.contains("no id") || $0.contains("xxx") })
        }
    }

    @Test func theLogHasOneLineForAnOutage() throws {
        let notes = Notes()
        let reports = Notes()
        let listener = NotificationListener(
            conninfo: database.conninfo + " port=1", mappings: try NotificationMapping.parseList("c -> t / e"),
            sink: loops,
            logger: .noting(notes), bounds: NotificationListener.Bounds()
        ) { reports.add($0 ?? "heard") }
        listener.start()
        defer { listener.stop() }
        try eventually("an attempt") { reports.all.count > 1 }
        #expect(
            notes.all.count == 1 && notes.all[0].contains("cannot listen to the channels of notify.channels for now"))
        #expect(reports.all.allSatisfy { $0.hasPrefix("notifications of the database are not received: ") })
        #expect(loops.lines().isEmpty)
    }
}

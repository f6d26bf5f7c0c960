import ChangeFeed
import Foundation
import Hub
import Logging
import Stores
import Testing

/// A writer on a database of its own, with all that it works for.
struct PresenceStage {
    let database: Database
    let log = PresenceLog()
    let users = UserPresence()
    let notes = Notes()
    let left = Notes()
    let writer: PresenceWriter

    /// - Parameter statement: nil for none.
    init(
        _ database: Database, node: String = "a", statement: String? = PresenceWriter.statementOfSampleChat,
        restoring: Duration = .seconds(3), stopping: Duration = .seconds(2), heartbeat: Duration? = nil
    ) {
        self.database = database
        var timing = PresenceTiming()
        timing.interval = .milliseconds(5)
        timing.heartbeat = heartbeat
        timing.firstRetry = .milliseconds(20)
        timing.restoring = restoring
        timing.stopping = stopping
        let left = left
        writer = PresenceWriter(
            conninfo: database.conninfo, node: node, log: log, users: users, statement: statement,
            logger: .noting(notes), timing: timing
        ) { users in
            for user in users { left.add(user.user) }
        }
    }

    /// Runs while the body does.
    func running<Outcome>(_ body: () throws -> Outcome) throws -> Outcome {
        writer.start()
        defer { writer.stop() }
        return try body()
    }

    func settle(_ what: String = "all is written") throws {
        try eventually(what) { log.isEmpty && !users.hasTransitions }
        // What was taken last may still be on its way.
        let passes = writer.statistics.passes
        try eventually(what) { writer.statistics.passes > passes && writer.statistics.oldestWaiting == nil }
    }

    /// The presences as the next process would find them, by ref.
    func stored() -> [PresenceRecord] { restored().presences.sorted { $0.ref < $1.ref } }

    func restored(node: String = "a") -> RestoredPresence {
        PresenceStage(database, node: node).writer.restore()
    }

    func enter(_ user: String, at second: Int64 = 1) { users.enter(user, at: Self.time(second)) }

    func leave(_ user: String, at second: Int64 = 2) { users.leave(user, window: 0, at: Self.time(second)) }

    static func time(_ second: Int64) -> HubTime { HubTime(monotonic: second * 1000, unix: second * 1000) }
}

extension PresenceRecord {
    static func sample(
        _ ref: String, in topic: String = "room", isPrivate: Bool = false, key: String = "ann",
        hasMadeKey: Bool = false, user: String? = nil, payload: String = "{}", appState: AppState? = nil
    ) -> PresenceRecord {
        PresenceRecord(
            channel: ChannelKey(topic: ChannelKey.prefix + topic, isPrivate: isPrivate), ref: ref, key: key,
            hasMadeKey: hasMadeKey, user: user, payload: Array(payload.utf8), appState: appState)
    }
}

extension Database {
    /// The sample chat's users, and three of them.
    func withUsers() throws -> Database {
        try prepared(
            """
            create table users (
                id uuid primary key, status text not null default 'offline'
                    check (status in ('online', 'away', 'offline')),
                last_seen timestamptz
            );
            insert into users (id) values ('\(Self.ann)'), ('\(Self.bob)'), ('\(Self.cat)');
            """)
    }

    static let ann = "00000000-0000-4000-8000-00000000000a"
    static let bob = "00000000-0000-4000-8000-00000000000b"
    static let cat = "00000000-0000-4000-8000-00000000000c"

    /// `online 1` and the like, in the order of the ids; the number is `last_seen` in seconds since 1970.
    func statuses() throws -> [String] {
        try session().rows(
            "select concat_ws(' ', status, extract(epoch from last_seen)::bigint) from users order by id"
        ).map { $0[0] ?? "" }
    }

    func onlineUsers() throws -> [String] {
        try session().rows("select node || ' ' || user_id from roost.online_user order by 1").map { $0[0] ?? "" }
    }
}

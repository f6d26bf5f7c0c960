import ChangeFeed
import Foundation
import Hub
import Logging
import Stores
import Testing
import Wire

@testable import PostgresFixtures

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
            for user in users { left.add(user.user.text) }
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

    func enter(_ user: String, at second: Int64 = 1) { users.socketOpened(Name(user), at: Self.time(second)) }

    func leave(_ user: String, at second: Int64 = 2) {
        users.socketClosed(Name(user), window: 0, at: Self.time(second))
    }

    static func time(_ second: Int64) -> HubTime { HubTime(monotonic: second * 1000, unix: second * 1000) }
}

extension PresenceRecord {
    static func sample(
        _ ref: String, in topic: String = "room", isPrivate: Bool = false, key: String = "ann",
        hasMadeKey: Bool = false, user: String? = nil, payload: String = "{}", appState: ReportedAppState? = nil
    ) -> PresenceRecord {
        PresenceRecord(
            channel: ChannelKey(topic: ChannelKey.prefix + topic, isPrivate: isPrivate), ref: Name(ref), key: key,
            hasMadeKey: hasMadeKey, user: user.map { Name($0) }, payload: Array(payload.utf8), appState: appState)
    }
}

import CPostgres
import Matching
import Wire

@testable import ChangeFeed
@testable import Hub
@testable import Notify
@testable import Postgres
@testable import Push
@testable import Stores

/// Rows as Postgres may send them, of tables that others can write as well: whatever stands in them is read, and used.
struct FuzzedRows {
    private let kind: UInt8
    private let rows: QueryResult
    private static let now = HubTime(monotonic: 1 << 40, unix: 1_700_000_000_000)
    /// As many as the widest of the statements has.
    private static let width = 18
    // Bytes that no text in UTF-8 has.
    static let (null, cell, row): (UInt8, UInt8, UInt8) = (0xFD, 0xFE, 0xFF)

    /// The first byte says what reads them.
    init?(_ bytes: [UInt8]) {
        guard let kind = bytes.first else { return nil }
        self.kind = kind
        let rows = bytes.dropFirst().split(separator: Self.row, maxSplits: 20).map {
            Array($0.split(separator: Self.cell, omittingEmptySubsequences: false).prefix(Self.width))
        }
        guard let made = PQmakeEmptyPGresult(nil, PGRES_TUPLES_OK) else { return nil }
        var columns = [PGresAttDesc](repeating: PGresAttDesc(), count: Self.width)
        PQsetResultAttrs(made, Int32(Self.width), &columns)
        for (number, row) in rows.enumerated() {
            for column in 0..<Self.width {
                let cell = row.indices.contains(column) ? row[column] : [Self.null]
                // In memory of its own, so that the sanitizer sees what is read behind its end.
                var copy = cell.map { CChar(bitPattern: $0) }
                PQsetvalue(made, Int32(number), Int32(column), &copy, cell == [Self.null] ? -1 : Int32(cell.count))
            }
        }
        self.rows = QueryResult(owning: made)
    }

    func read() {
        switch kind % 8 {
        case 0: readSessions()
        case 1: readPresences()
        case 2: OwnedActivity.fuzz(rows)
        case 3:
            for alert in TakenAlerts(rows).alerts { use(alert.variables) }
            for row in 0..<rows.count { _ = PushDestination(rows, row, from: 6) }
        case 4: readPolicies()
        case 5: readWindow()
        case 6:
            var reader = RecoveredRowReader(catalog: Self.catalog)
            for _ in 0..<2 { attempt { _ = try reader.row(rows) } }
        default:
            for row in 0..<rows.count { _ = ReplayedMessage(rows, row) }
            _ = MessagesTable(rows)?.probe(topic: "a", extension: "broadcast")
        }
    }

    private func attempt(_ body: () throws -> Void) { do { try body() } catch {} }

    // MARK: Who may come back

    private func readSessions() {
        let registry = SessionRegistry()
        registry.record(whenAwaited: {})
        let records = (0..<rows.count).compactMap { SessionRegistry.Record(rows, $0, at: 0) }
        registry.restore(records)
        registry.nothingIsWritten()
        let socket = AcknowledgementState(mark: 0, of: SocketPlace(loop: 0, slot: 0))
        for record in records {
            let trace = ClientTrace(evidence: .none, acknowledged: socket, at: Self.now, moment: registry.moment())
            let here = LoopPosition(mark: 5, isPastMark: false, isHeard: true)
            let (session, _) = registry.enter(record.key, trace, here: here, at: Self.now)
            _ = registry.settle(session, here: here, at: Self.now)
            let changed = registry.takeChanged(upTo: 100)
            registry.isWritten(changed, successfully: record.count % 2 == 0)
            registry.lose(session, at: Self.now)
        }
        _ = (registry.oldestMark(), registry.endedSessions, registry.isComplete(at: Self.now))
        registry.forget(at: HubTime(monotonic: 1 << 50, unix: 1 << 50))
    }

    // MARK: Who was present

    private func readPresences() {
        let shared = HubShared()
        let hub = Hub(
            loop: 0, limits: HubLimits(), verifier: NoTokens(), random: SystemRandomNumberGenerator(),
            presence: PresenceRules(), typing: TypingRules(), shared: shared)
        hub.advance(to: Self.now)
        let records = (0..<rows.count).compactMap { PresenceRecord(rows, $0) }
        hub.restorePresence(shared.leases.restore(records, until: Self.now.monotonic + 5))
        hub.tick(at: HubTime(monotonic: Self.now.monotonic + 100_000, unix: Self.now.unix + 100_000))
        hub.actions = []
    }

    private struct NoTokens: TokenVerifier {
        func verify(_ token: String, at now: HubTime) throws(Refusal) -> Claims { throw .signatureInvalid }
    }

    // MARK: Policies

    private func readPolicies() {
        if rows.count > 0, let reply = PolicyReply(rows, subjects: rows.count - 1) { _ = reply.mayBeStale }
        _ = PolicyDescription(rows)?.condition
    }

    // MARK: Changes

    private final class Consumer: WindowConsumer {
        func membersChanged(_ changes: [MemberChange]) {}
        func windowBegan(_ cursors: CursorWindow) {}
        func hears(_ table: Table) -> Bool { true }
        func consume(_ entries: [FeedEntry]) throws {
            for case .change(let change) in entries {
                _ = (change.messageKey, change.messageID, change.committedAtMilliseconds)
            }
        }
    }

    private static let catalog = Catalog(tables: [
        Table(
            oid: 7, schema: "s", name: "t",
            columns: [
                Column(
                    name: "id", type: "int4", sqlType: "integer", comparison: .postgres, isPrimaryKey: true,
                    isReplicaIdentity: true)
            ])
    ])

    private func readWindow() {
        guard let start = FeedCursor("AQAAAAAKAAAA.1") else { fatalError("no cursor") }
        let reader = WindowReader(
            consumer: Consumer(), catalog: Self.catalog, settled: [9: nil], mayAskAgain: false, catalogAsOf: .now,
            skip: [], passingOver: [], after: start, willHandOn: {})
        // Rows come one by one, each in a result of its own.
        attempt {
            guard try reader.take(rows) else { return }
            _ = try reader.finish()
        }
    }

    private func use(_ variables: [UInt8]) {
        // Postgres makes them, so they are JSON.
        do { _ = try JSON(parsing: variables) } catch { return }
        var facts = ConversationFacts()
        MessageNotification(variables, badge: .max, preview: Preview()).note(in: &facts, at: 5)
    }
}

extension OwnedActivity {
    /// What a hub does with an activity that another one had.
    fileprivate static func fuzz(_ rows: QueryResult) {
        let now = HubTime(monotonic: 1 << 40, unix: 1_700_000_000_000)
        let content: ContentTemplate
        do { content = try ContentTemplate(#"{"at":"{started_at}"}"#) } catch { fatalError("\(error)") }
        var scheduler = ActivityScheduler(ActivityRules(content: content))
        for owned in ActivityRow.all(rows) {
            let activity = owned.activity
            // Postgres keeps it as jsonb.
            do { _ = try JSON(parsing: activity.state ?? Array("{}".utf8)) } catch { continue }
            for _ in 0..<2 {
                scheduler.put(
                    activity, status: .away, facts: ConversationFacts(), wasDelivered: activity.wasDelivered,
                    isPosted: activity.isPosted, at: now)
            }
            _ = scheduler.post(
                ActivityPost(contentState: .emptyObject), to: activity.id, at: now)
            for case .stamp(let push) in scheduler.advance(to: HubTime(monotonic: 1 << 41, unix: now.unix + 5)) {
                scheduler.refused(push.id, timestamp: push.timestamp, current: activity, at: now)
            }
        }
    }
}

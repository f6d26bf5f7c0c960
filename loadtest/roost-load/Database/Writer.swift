import CPostgres
import Glibc

/// One writer's share of the schedule, on a thread of its own.
///
/// A conversation belongs to one writer, so that the order of its rows is the order of their commits. The schedule is
/// open loop: a commit that takes long delays those behind it, and their latency counts from when they were due.
struct Writer: Sendable {
    let index: Int
    let count: Int
    let schedule: RowSchedule
    let code: StampCode
    let conninfo: String
    let insert: String
    let log: CommitLog

    func start() throws {
        let box = Unmanaged.passRetained(Box(self))
        var handle = pthread_t()
        let status = pthread_create(
            &handle, nil,
            { argument in
                guard let argument else { return nil }
                Unmanaged<Box>.fromOpaque(argument).takeRetainedValue().writer.run()
                return nil
            }, box.toOpaque())
        guard status == 0 else {
            box.release()
            throw LoadFailure.system("Starting a writer's thread", status)
        }
        pthread_detach(handle)
    }

    private final class Box {
        let writer: Writer
        init(_ writer: Writer) { self.writer = writer }
    }

    private func run() {
        defer { log.finished() }
        let session: WriterSession
        do { session = try WriterSession(conninfo, insert: insert) } catch let failure as LoadFailure {
            return log.broken(failure)
        } catch {
            return log.broken(LoadFailure("\(error)"))
        }
        log.connected()
        write(session, from: waitForStart())
    }

    private func waitForStart() -> UInt64 {
        while true {
            if let start = log.start { return start }
            usleep(1000)
        }
    }

    private func write(_ session: WriterSession, from start: UInt64) {
        for tick in 0..<schedule.ticks.total where schedule.conversation(of: tick) % count == index {
            let conversation = schedule.conversation(of: tick)
            let stamp = code.timelessText(
                of: Stamp(kind: .row, stream: schedule.stream(of: conversation), number: schedule.number(of: tick)))
            let due = start + schedule.ticks.offset(of: tick)
            // In steps, so that a run that is ended early need not wait for a rare row.
            while MonotonicClock.now + Self.step < due, !log.isStopped {
                MonotonicClock.sleep(until: MonotonicClock.now + Self.step)
            }
            MonotonicClock.sleep(until: due)
            guard log.begins(tick, writer: index) else { return }
            do {
                try session.insert(conversation: schedule.uuid(of: conversation), stamp: stamp)
                log.committed(tick, at: MonotonicClock.now)
            } catch {
                log.failed(tick, in: conversation, error as? LoadFailure ?? LoadFailure("\(error)"))
            }
        }
    }

    private static let step: UInt64 = 200_000_000
}

/// A blocking session with Postgres that inserts one row per transaction. Confined to its writer's thread.
final class WriterSession {
    private let raw: OpaquePointer

    init(_ conninfo: String, insert: String) throws {
        guard let raw = PQconnectdb(conninfo) else { throw LoadFailure("Out of memory while connecting to Postgres.") }
        self.raw = raw
        guard PQstatus(raw) == CONNECTION_OK else {
            throw LoadFailure("Postgres cannot be reached: \(message)")
        }
        let result = PQprepare(raw, "insert", insert, 2, nil)
        defer { PQclear(result) }
        guard PQresultStatus(result) == PGRES_COMMAND_OK else {
            let remedy = "Make the table that the help describes and watch it, or give another INSERT with --insert. "
            throw LoadFailure(
                (Self.isMissing(result) ? remedy : "") + "Postgres does not take `\(insert)`: \(message)")
        }
    }

    deinit { PQfinish(raw) }

    /// Postgres knows no such table or column.
    private static func isMissing(_ result: OpaquePointer?) -> Bool {
        // PG_DIAG_SQLSTATE of libpq's headers.
        guard let state = PQresultErrorField(result, Int32(UInt8(ascii: "C"))) else { return false }
        return ["42P01", "42703"].contains(String(cString: state))
    }

    func insert(conversation: String, stamp: String) throws {
        let result = conversation.withCString { first in
            stamp.withCString { second in
                PQexecPrepared(raw, "insert", 2, [first, second], nil, nil, 0)
            }
        }
        defer { PQclear(result) }
        let status = PQresultStatus(result)
        guard status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK else {
            throw LoadFailure("An insert failed: \(message)")
        }
    }

    /// libpq ends its messages with a line break.
    private var message: String {
        var text = String(cString: PQerrorMessage(raw))
        while text.last?.isNewline == true { text.removeLast() }
        return text
    }
}

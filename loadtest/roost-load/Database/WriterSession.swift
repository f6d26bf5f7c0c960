import CPostgres
import Glibc

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
            throw LoadFailure("Postgres does not take `\(insert)`: \(message)")
        }
    }

    deinit { PQfinish(raw) }

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

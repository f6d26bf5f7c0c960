import CPostgres

/// The rows of one statement, as text; owns libpq's memory.
package final class QueryResult {
    private let raw: OpaquePointer

    init(owning raw: OpaquePointer) { self.raw = raw }

    deinit { PQclear(raw) }

    /// True if the statement returns rows and succeeded.
    package var isTable: Bool { status == PGRES_TUPLES_OK }

    var status: ExecStatusType { PQresultStatus(raw) }
    package var count: Int { Int(PQntuples(raw)) }
    package var width: Int { Int(PQnfields(raw)) }
    package func name(ofColumn column: Int) -> String? { PQfname(raw, Int32(column)).map { String(cString: $0) } }
    package var affectedRows: Int { Int(String(cString: PQcmdTuples(raw))) ?? 0 }

    package func bytes(_ row: Int, _ column: Int) -> UnsafeBufferPointer<UInt8>? {
        guard PQgetisnull(raw, Int32(row), Int32(column)) == 0, let start = PQgetvalue(raw, Int32(row), Int32(column))
        else { return nil }
        let length = Int(PQgetlength(raw, Int32(row), Int32(column)))
        return UnsafeBufferPointer(start: UnsafeRawPointer(start).assumingMemoryBound(to: UInt8.self), count: length)
    }

    package func text(_ row: Int, _ column: Int) -> String? {
        bytes(row, column).map { String(decoding: $0, as: UTF8.self) }
    }

    package func flag(_ row: Int, _ column: Int) -> Bool { bytes(row, column)?.first == UInt8(ascii: "t") }

    package func integer(_ row: Int, _ column: Int) -> Int64? { text(row, column).flatMap { Int64($0) } }

    /// A number for arithmetic, such as a time. Clamped to ±2^53, so that sums do not overflow.
    package func boundedInteger(_ row: Int, _ column: Int) -> Int64? {
        integer(row, column).map { min(max($0, -(1 << 53)), 1 << 53) }
    }

    package var error: PostgresError? {
        switch status {
        case PGRES_FATAL_ERROR, PGRES_BAD_RESPONSE, PGRES_NONFATAL_ERROR: break
        default: return nil
        }
        let state = PQresultErrorField(raw, Int32(UInt8(ascii: "C"))).map { String(cString: $0) }
        let message = PQresultErrorField(raw, Int32(UInt8(ascii: "M"))).map { String(cString: $0) }
        let text = message ?? String(cString: PQresultErrorMessage(raw)).trimmed
        // Class 57P: the server is shutting down or has ended this session. An error without a state is libpq's own.
        let isGone = state == nil || (state?.hasPrefix("57P") ?? false)
        return PostgresError(isGone ? .connection : .server, sqlState: state, text)
    }
}

import CPostgres

/// The rows of one statement, as text; owns libpq's memory of them.
package final class QueryResult {
    private let raw: OpaquePointer

    init(owning raw: OpaquePointer) { self.raw = raw }

    deinit { PQclear(raw) }

    /// Whether the statement is one that returns rows, and went well.
    package var isTable: Bool { status == PGRES_TUPLES_OK }

    var status: ExecStatusType { PQresultStatus(raw) }
    package var count: Int { Int(PQntuples(raw)) }
    package var width: Int { Int(PQnfields(raw)) }
    /// A column's name.
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

    /// A number that is reckoned with, as a time is; one beyond ±2^53 counts as that, so that whatever is added to it fits.
    package func figure(_ row: Int, _ column: Int) -> Int64? {
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
        // Class 57P: the server is going away, or has thrown this session out. Without a state libpq itself speaks.
        let isGone = state == nil || (state?.hasPrefix("57P") ?? false)
        return PostgresError(isGone ? .connection : .server, sqlState: state, text)
    }
}

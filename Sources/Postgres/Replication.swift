import CPostgres
import Glibc
package import Logging

/// A walsender's session (Postgres' documentation, "Streaming Replication Protocol"): it takes replication commands and
/// simple queries, and once a stream has begun, only the stream.
extension PostgresConnection {
    /// Connects to a walsender, and sets its session up like any other, so that values have the same texts as in the
    /// outbox.
    ///
    /// - Throws: `PostgresError`, also if the role may not replicate, no walsender is free, or there is a pooler in
    ///   between: none of them passes replication through.
    package convenience init(
        replicating options: ConnectionOptions, waiter: any SocketWaiter, logger: Logger,
        within limit: Duration = .seconds(10)
    ) throws {
        try self.init(bare: options.replicating, waiter: waiter, logger: logger, within: limit)
        try runOnWalsender(SessionSQL.setUp, within: limit)
    }

    /// Runs a script on a walsender's session. Each of its statements ends at the end of a line: Postgres 13 takes one at a
    /// time, and none that begins with a comment (replication/repl_gram.y in its source).
    package func runOnWalsender(_ script: some NamedStatement, within limit: Duration = .seconds(10)) throws {
        for statement in SQLTemplate.withoutComments(script.text).split(separator: ";\n") {
            try runScript(String(statement), within: limit)
        }
    }

    /// Sends a replication command that opens a stream (START_REPLICATION), and waits until the stream begins.
    ///
    /// - Throws: `PostgresError` with the server's reason for refusing.
    package func beginStream(_ command: String, within limit: Duration = .seconds(10)) throws {
        try demandUsable()
        guard PQsendQuery(raw, command) == 1 else { throw markBroken() }
        guard let result = try nextResult(until: .now + limit) else { throw markBroken() }
        if result.status == PGRES_COPY_BOTH { return }
        let error = result.error ?? PostgresError(.server, "Postgres did not start a stream.")
        while try nextResult(until: .now + limit) != nil {}
        throw recordError(error)
    }

    package enum StreamArrival {
        case message
        /// No complete message has arrived; the socket becomes readable when more does.
        case pending
    }

    /// Passes on the stream's next message, without waiting.
    ///
    /// - Parameter body: receives the message's bytes, which are valid only during the call.
    /// - Throws: `PostgresError` with the reason if the stream has ended, and errors of `body`.
    package func takeStreamMessage(_ body: (UnsafeRawBufferPointer) throws -> Void) throws -> StreamArrival {
        var buffer: UnsafeMutablePointer<CChar>?
        var length = PQgetCopyData(raw, &buffer, 1)
        if length == 0 {
            try consumeInput()
            length = PQgetCopyData(raw, &buffer, 1)
        }
        if length == 0 { return .pending }
        guard length > 0, let buffer else { throw try endOfStream() }
        defer { PQfreemem(buffer) }
        try body(UnsafeRawBufferPointer(start: buffer, count: Int(length)))
        return .message
    }

    /// Sends a message into the stream without waiting; bytes that the socket does not take go with the next message.
    package func putStreamMessage(_ message: [UInt8]) throws {
        let status = message.withUnsafeBytes { bytes in
            PQputCopyData(raw, bytes.assumingMemoryBound(to: CChar.self).baseAddress, Int32(bytes.count))
        }
        guard status >= 0, PQflush(raw) >= 0 else { throw markBroken() }
    }

    /// Ends the stream, and with it the session's use of the slot. The session cannot be used again.
    package func endStream(within limit: Duration = .seconds(5)) throws {
        guard PQputCopyEnd(raw, nil) >= 0 else { throw markBroken() }
        // Messages under way still arrive before the end.
        let deadline = ContinuousClock.now + limit
        while discardArrived() {
            try waiter.wait(for: descriptor, events: Int16(POLLIN), until: deadline)
            try consumeInput()
        }
        _ = markBroken()
    }

    /// Discards the messages of the stream that have arrived.
    ///
    /// - Returns: false at the stream's end.
    private func discardArrived() -> Bool {
        while true {
            var buffer: UnsafeMutablePointer<CChar>?
            let length = PQgetCopyData(raw, &buffer, 1)
            PQfreemem(buffer)
            if length <= 0 { return length == 0 }
        }
    }

    private func endOfStream() throws -> PostgresError {
        let result = try nextResult(until: .now + .seconds(1))
        // Whatever the reason, this session has stopped streaming.
        let error = markBroken()
        return result?.error
            ?? (error.message.isEmpty ? PostgresError(.connection, "Postgres ended the stream.") : error)
    }
}

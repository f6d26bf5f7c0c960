import CPostgres
import Glibc
package import Logging

/// One session with Postgres that never blocks in libpq: the waiter does all waiting, under a deadline.
///
/// Confined to the thread that created it.
package final class PostgresConnection {
    let raw: OpaquePointer
    private let notices: NoticeSink
    private let logger: Logger
    package let waiter: any SocketWaiter
    /// True when a deadline passed or the socket broke: the session must not be used again.
    package private(set) var isBroken = false
    private var unfinished: QueryResult?

    package var descriptor: Int32 { PQsocket(raw) }
    /// The backend's process ID as Postgres reports it, not as a pooler does.
    package private(set) var backendID: Int32
    /// libpq's number: 150004 is 15.4.
    package var serverVersion: Int { Int(PQserverVersion(raw)) }

    /// The database's encoding, by Postgres' name. This session reads and writes UTF-8.
    package var serverEncoding: String {
        PQparameterStatus(raw, "server_encoding").map { String(cString: $0) } ?? "UTF8"
    }

    /// Identifies the server and database among those that the process may know.
    package var serverName: String {
        [PQhost(raw), PQport(raw), PQdb(raw)].map { $0.map { String(cString: $0) } ?? "" }.joined(separator: "/")
    }

    /// Connects to the first host that accepts, and sets the session up.
    ///
    /// - Parameter limit: time for each host to connect (unless `connect_timeout` is shorter), and for the setup.
    /// - Throws: `PostgresError`, also if a pooler lends sessions by the transaction; nothing was set then.
    package convenience init(
        _ options: ConnectionOptions, waiter: any SocketWaiter, logger: Logger, within limit: Duration = .seconds(10)
    ) throws {
        try self.init(bare: options, waiter: waiter, logger: logger, within: limit)
        if let process = try Pooler.backendID(of: self, limit), process != backendID {
            try Pooler.demandSession(of: self, within: limit) {
                try PostgresConnection(bare: options, waiter: waiter, logger: logger, within: limit)
            }
            backendID = process
        }
        try runScript(SessionSQL.setUp, within: limit)
    }

    /// Opens a session without any setup.
    init(
        bare options: ConnectionOptions, waiter: any SocketWaiter, logger: Logger, within limit: Duration
    ) throws {
        raw = try Self.connect(options, waiter, within: limit)
        self.waiter = waiter
        self.logger = logger
        backendID = PQbackendPID(raw)
        notices = NoticeSink(logger: logger)
        guard PQsetnonblocking(raw, 1) == 0 else { throw failure() }
        notices.attach(to: raw)
    }

    deinit {
        // Closing the connection would not stop its backend.
        if !isBroken, PQtransactionStatus(raw) == PQTRANS_ACTIVE {
            AbandonedStatements.shared.abandonStatement(raw, of: serverName, logger: logger, level: .debug)
        }
        PQfinish(raw)
    }

    /// Runs one statement with text parameters, and waits for its whole result.
    package func query(_ sql: String, _ parameters: [String?] = [], within limit: Duration = .seconds(10)) throws
        -> QueryResult
    {
        try sendQuery(sql, parameters)
        return try finishStatement(until: .now + limit)
    }

    /// Runs a script of several statements without parameters, and returns the last result.
    @discardableResult
    package func runScript(_ script: String, within limit: Duration = .seconds(10)) throws -> QueryResult {
        try demandUsable()
        guard PQsendQuery(raw, script) == 1 else { throw markBroken() }
        return try finishStatement(until: .now + limit)
    }

    /// Runs a script of several statements without parameters, and returns the results up to the first failure. `script` is
    /// UTF-8 without a NUL.
    package func results(
        of script: [UInt8], within limit: Duration
    ) throws -> (finished: [QueryResult], failure: PostgresError?) {
        try demandUsable()
        let sent = (script + [0]).withUnsafeBytes { bytes in
            PQsendQuery(raw, bytes.assumingMemoryBound(to: CChar.self).baseAddress)
        }
        guard sent == 1 else { throw markBroken() }
        let deadline = ContinuousClock.now + limit
        var finished: [QueryResult] = []
        var failure: PostgresError?
        while let result = try nextResult(until: deadline) {
            if let error = result.error {
                failure = recordError(error)
            } else {
                finished.append(result)
            }
        }
        if let failure, failure.kind != .server { throw failure }
        return (finished, failure)
    }

    /// Sends without waiting; `takeResult` returns the result once it is complete.
    package func sendQuery(_ sql: String, _ parameters: [String?] = []) throws {
        try demandUsable()
        let texts = parameters.map { $0.map { strdup($0) } ?? nil }
        defer { texts.forEach { free($0) } }
        let sent = texts.map { UnsafePointer($0) }.withUnsafeBufferPointer { values in
            PQsendQueryParams(raw, sql, Int32(parameters.count), nil, values.baseAddress, nil, nil, 0)
        }
        guard sent == 1 else { throw markBroken() }
        guard PQflush(raw) >= 0 else { throw markBroken() }
    }

    /// Sends a script without parameters, or a replication command, without waiting; `takeResult` returns the result once
    /// it is complete.
    package func send(script: String) throws {
        try demandUsable()
        guard PQsendQuery(raw, script) == 1 else { throw markBroken() }
        guard PQflush(raw) >= 0 else { throw markBroken() }
    }

    /// Reads the bytes that have arrived, and returns a finished statement's result; nil while it runs.
    package func takeResult() throws -> QueryResult? {
        try consumeInput()
        while PQisBusy(raw) == 0 {
            // Only the null after the last result means that the session can take the next statement.
            guard let result = PQgetResult(raw) else {
                defer { unfinished = nil }
                return unfinished
            }
            unfinished = QueryResult(owning: result)
        }
        return nil
    }

    /// Sends a statement and passes its rows on one at a time, as they arrive.
    ///
    /// - Parameter row: returns false to discard the remaining rows; `limit` starts over with each row.
    package func streamRows(
        _ sql: String, _ parameters: [String?] = [], within limit: Duration, row: (QueryResult) throws -> Bool
    ) throws {
        try sendQuery(sql, parameters)
        try streamRows(within: limit, row)
    }

    /// Streams the rows of a prepared statement in the same way.
    package func streamRows(_ call: PreparedCall, within limit: Duration, row: (QueryResult) throws -> Bool) throws {
        try demandUsable()
        try sendCall(call)
        guard PQflush(raw) >= 0 else { throw markBroken() }
        try streamRows(within: limit, row)
    }

    private func streamRows(within limit: Duration, _ row: (QueryResult) throws -> Bool) throws {
        guard PQsetSingleRowMode(raw) == 1 else { throw markBroken() }
        var wantsMore = true
        while let result = try nextResult(until: .now + limit) {
            if let error = result.error { throw recordError(error) }
            guard result.status == PGRES_SINGLE_TUPLE, wantsMore else { continue }
            wantsMore = try row(result)
        }
    }

    /// Sends a statement whose rows `takeRow` returns.
    package func beginRows(_ sql: String) throws {
        try sendQuery(sql)
        guard PQsetSingleRowMode(raw) == 1 else { throw markBroken() }
    }

    package enum Arrival {
        case row(QueryResult)
        /// No complete row has arrived; the socket becomes readable when more does.
        case pending
        case end
    }

    /// Returns the next row of `beginRows` without waiting. Rows not taken stay with Postgres, except for those in the
    /// socket's buffers.
    package func takeRow() throws -> Arrival {
        while true {
            if PQisBusy(raw) == 1 {
                guard PQflush(raw) >= 0 else { throw markBroken() }
                try consumeInput()
                if PQisBusy(raw) == 1 { return .pending }
            }
            guard let result = PQgetResult(raw).map({ QueryResult(owning: $0) }) else { return .end }
            if let error = result.error { throw recordError(error) }
            if result.status == PGRES_SINGLE_TUPLE { return .row(result) }
        }
    }

    /// Reads the bytes that have arrived, and returns how many notifications they contained.
    package func takeNotifications() throws -> Int { try takeRawNotifications { _ in } }

    /// Reads the bytes that have arrived, and passes on each notification. Notifications may also have arrived with a
    /// statement's result.
    ///
    /// - Parameter each: receives the channel and the payload.
    /// - Returns: the number of notifications.
    @discardableResult
    package func takeNotifications(_ each: (String, [UInt8]) -> Void) throws -> Int {
        try takeRawNotifications { notification in
            let payload = UnsafeRawBufferPointer(start: notification.extra, count: strlen(notification.extra))
            each(String(cString: notification.relname), Array(payload))
        }
    }

    private func takeRawNotifications(_ each: (PGnotify) -> Void) throws -> Int {
        try consumeInput()
        var count = 0
        while let notification = PQnotifies(raw) {
            each(notification.pointee)
            PQfreemem(notification)
            count += 1
        }
        return count
    }

    /// True if nothing has arrived. An unsolicited message from Postgres most often says that it is ending the session.
    package var isSilent: Bool {
        var socket = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return poll(&socket, 1, 0) == 0
    }

    private func finishStatement(until deadline: ContinuousClock.Instant) throws -> QueryResult {
        var last: QueryResult?
        var error: PostgresError?
        while let result = try nextResult(until: deadline) {
            error = error ?? result.error
            last = result
        }
        if let error { throw recordError(error) }
        guard let last else { throw markBroken() }
        return last
    }

    func nextResult(until deadline: ContinuousClock.Instant) throws -> QueryResult? {
        while PQisBusy(raw) == 1 {
            let unsent = PQflush(raw)
            guard unsent >= 0 else { throw markBroken() }
            try waitForSocket(unsent == 1 ? POLLIN | POLLOUT : POLLIN, deadline)
            try consumeInput()
        }
        return PQgetResult(raw).map { QueryResult(owning: $0) }
    }

    private func waitForSocket(_ events: Int32, _ deadline: ContinuousClock.Instant) throws {
        do {
            try waiter.wait(for: descriptor, events: Int16(events), until: deadline)
        } catch {
            // A result that arrives after its caller gave up would be taken for the next statement's.
            if !isBroken {
                AbandonedStatements.shared.abandonStatement(raw, of: serverName, logger: logger, level: .warning)
            }
            isBroken = true
            throw error
        }
    }

    func consumeInput() throws {
        guard PQconsumeInput(raw) == 1 else { throw markBroken() }
    }

    func demandUsable() throws {
        if isBroken { throw PostgresError(.connection, "The connection to Postgres is gone.") }
    }

    func recordError(_ error: PostgresError) -> PostgresError {
        if error.kind != .server { isBroken = true }
        return error
    }

    func markBroken() -> PostgresError {
        isBroken = true
        return failure()
    }

    private func failure() -> PostgresError { Self.failure(of: raw) }

    static func failure(of raw: OpaquePointer) -> PostgresError {
        PostgresError(.connection, String(cString: PQerrorMessage(raw)).trimmed)
    }
}

/// Logs Postgres' notices and warnings.
private final class NoticeSink {
    private let logger: Logger

    init(logger: Logger) { self.logger = logger }

    /// The sink must outlive the connection, which owns it.
    func attach(to connection: OpaquePointer) {
        _ = PQsetNoticeProcessor(
            connection,
            { context, message in
                guard let context, let message else { return }
                let sink = Unmanaged<NoticeSink>.fromOpaque(context).takeUnretainedValue()
                sink.logger.debug("Postgres says: \(String(cString: message).trimmed)")
            }, Unmanaged.passUnretained(self).toOpaque())
    }
}

import CPostgres
import Glibc
package import Logging

/// One session with Postgres, never blocking in libpq: all waiting is the waiter's, under a deadline.
///
/// Confined to the thread that made it.
package final class PostgresConnection {
    let raw: OpaquePointer
    private let notices: NoticeSink
    private let logger: Logger
    package let waiter: any SocketWaiter
    /// A deadline passed or the socket broke: nothing more may be asked here.
    package private(set) var isBroken = false
    private var unfinished: QueryResult?

    package var descriptor: Int32 { PQsocket(raw) }
    /// The process of the session, as Postgres tells it; a pooler tells another.
    package private(set) var backendID: Int32
    /// As libpq counts: 150004 is 15.4.
    package var serverVersion: Int { Int(PQserverVersion(raw)) }

    /// How the database keeps texts, by Postgres' name for it. What this session reads and writes is UTF-8.
    package var serverEncoding: String {
        PQparameterStatus(raw, "server_encoding").map { String(cString: $0) } ?? "UTF8"
    }

    /// Which server and database this is, to tell it from others that the process may know.
    package var serverName: String {
        [PQhost(raw), PQport(raw), PQdb(raw)].map { $0.map { String(cString: $0) } ?? "" }.joined(separator: "/")
    }

    /// Connects to the first host that will have it, and sets the session up.
    ///
    /// - Parameter limit: for each host to connect, where `connect_timeout` is not shorter, and for the set-up.
    /// - Throws: `PostgresError`, also where a pooler lends sessions by the transaction; nothing was set then.
    package convenience init(
        _ options: ConnectionOptions, waiter: any SocketWaiter, logger: Logger, within limit: Duration = .seconds(10)
    ) throws {
        try self.init(bare: options, waiter: waiter, logger: logger, within: limit)
        if let process = try Pooler.process(of: self, limit), process != backendID {
            try Pooler.demandSession(of: self, within: limit) {
                try PostgresConnection(bare: options, waiter: waiter, logger: logger, within: limit)
            }
            backendID = process
        }
        try run(SessionSQL.setUp, within: limit)
    }

    /// A session as Postgres gives it.
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
        // Closing it would not end what its backend is at.
        if !isBroken, PQtransactionStatus(raw) == PQTRANS_ACTIVE {
            AbandonedStatements.shared.abandon(raw, of: serverName, logger: logger, level: .debug)
        }
        PQfinish(raw)
    }

    /// One statement with text parameters; waits for its whole result.
    package func query(_ sql: String, _ parameters: [String?] = [], within limit: Duration = .seconds(10)) throws
        -> QueryResult
    {
        try send(sql, parameters)
        return try finish(until: .now + limit)
    }

    /// A script of several statements without parameters; the last result counts.
    @discardableResult
    package func run(_ script: String, within limit: Duration = .seconds(10)) throws -> QueryResult {
        try usable()
        guard PQsendQuery(raw, script) == 1 else { throw broken() }
        return try finish(until: .now + limit)
    }

    /// Runs a script of several statements without parameters, and returns the results of those that went well, up to
    /// the first that did not. `script` is UTF-8 without a NUL.
    package func results(
        of script: [UInt8], within limit: Duration
    ) throws -> (finished: [QueryResult], failure: PostgresError?) {
        try usable()
        let sent = (script + [0]).withUnsafeBytes { bytes in
            PQsendQuery(raw, bytes.assumingMemoryBound(to: CChar.self).baseAddress)
        }
        guard sent == 1 else { throw broken() }
        let deadline = ContinuousClock.now + limit
        var finished: [QueryResult] = []
        var failure: PostgresError?
        while let result = try nextResult(until: deadline) {
            if let error = result.error {
                failure = note(error)
            } else {
                finished.append(result)
            }
        }
        if let failure, failure.kind != .server { throw failure }
        return (finished, failure)
    }

    /// Sends without waiting; `takeResult` tells when the answer is there.
    package func send(_ sql: String, _ parameters: [String?] = []) throws {
        try usable()
        let texts = parameters.map { $0.map { strdup($0) } ?? nil }
        defer { texts.forEach { free($0) } }
        let sent = texts.map { UnsafePointer($0) }.withUnsafeBufferPointer { values in
            PQsendQueryParams(raw, sql, Int32(parameters.count), nil, values.baseAddress, nil, nil, 0)
        }
        guard sent == 1 else { throw broken() }
        guard PQflush(raw) >= 0 else { throw broken() }
    }

    /// Sends a script without parameters, or a replication command, without waiting; `takeResult` tells when the answer is
    /// there.
    package func send(script: String) throws {
        try usable()
        guard PQsendQuery(raw, script) == 1 else { throw broken() }
        guard PQflush(raw) >= 0 else { throw broken() }
    }

    /// Reads what has arrived and returns a finished statement's result, or nil while it runs.
    package func takeResult() throws -> QueryResult? {
        try consume()
        while PQisBusy(raw) == 0 {
            // Only the null after the last result says that the session takes the next statement.
            guard let result = PQgetResult(raw) else {
                defer { unfinished = nil }
                return unfinished
            }
            unfinished = QueryResult(owning: result)
        }
        return nil
    }

    /// Sends a statement and hands its rows on as they arrive, one at a time.
    ///
    /// - Parameter row: returns false to have the rest thrown away; `limit` is counted anew from each row.
    package func stream(
        _ sql: String, _ parameters: [String?] = [], within limit: Duration, row: (QueryResult) throws -> Bool
    ) throws {
        try send(sql, parameters)
        try streamRows(within: limit, row)
    }

    /// As the other one, of a prepared statement.
    package func stream(_ call: PreparedCall, within limit: Duration, row: (QueryResult) throws -> Bool) throws {
        try usable()
        try send(call)
        guard PQflush(raw) >= 0 else { throw broken() }
        try streamRows(within: limit, row)
    }

    private func streamRows(within limit: Duration, _ row: (QueryResult) throws -> Bool) throws {
        guard PQsetSingleRowMode(raw) == 1 else { throw broken() }
        var wantsMore = true
        while let result = try nextResult(until: .now + limit) {
            if let error = result.error { throw note(error) }
            guard result.status == PGRES_SINGLE_TUPLE, wantsMore else { continue }
            wantsMore = try row(result)
        }
    }

    /// Sends a statement whose rows `takeRow` hands out.
    package func beginRows(_ sql: String) throws {
        try send(sql)
        guard PQsetSingleRowMode(raw) == 1 else { throw broken() }
    }

    package enum Arrival {
        case row(QueryResult)
        /// Nothing has arrived; the socket says when.
        case pending
        case end
    }

    /// The next row of `beginRows`, without waiting. What is not taken stays with Postgres, but for what the socket holds.
    package func takeRow() throws -> Arrival {
        while true {
            if PQisBusy(raw) == 1 {
                guard PQflush(raw) >= 0 else { throw broken() }
                try consume()
                if PQisBusy(raw) == 1 { return .pending }
            }
            guard let result = PQgetResult(raw).map({ QueryResult(owning: $0) }) else { return .end }
            if let error = result.error { throw note(error) }
            if result.status == PGRES_SINGLE_TUPLE { return .row(result) }
        }
    }

    /// Takes in what has arrived and returns how many notifications were among it.
    package func takeNotifications() throws -> Int { try takeRawNotifications { _ in } }

    /// Takes in what has arrived, and hands on what the notifications among it say. They may also have come with a statement's
    /// answer.
    ///
    /// - Parameter each: is given the channel and the payload.
    /// - Returns: how many there were.
    @discardableResult
    package func takeNotifications(_ each: (String, [UInt8]) -> Void) throws -> Int {
        try takeRawNotifications { notification in
            let payload = UnsafeRawBufferPointer(start: notification.extra, count: strlen(notification.extra))
            each(String(cString: notification.relname), Array(payload))
        }
    }

    private func takeRawNotifications(_ each: (PGnotify) -> Void) throws -> Int {
        try consume()
        var count = 0
        while let notification = PQnotifies(raw) {
            each(notification.pointee)
            PQfreemem(notification)
            count += 1
        }
        return count
    }

    /// Whether nothing has arrived. What Postgres says to a session that asked nothing is, most often, that it ends it.
    package var isSilent: Bool {
        var socket = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return poll(&socket, 1, 0) == 0
    }

    private func finish(until deadline: ContinuousClock.Instant) throws -> QueryResult {
        var last: QueryResult?
        var error: PostgresError?
        while let result = try nextResult(until: deadline) {
            error = error ?? result.error
            last = result
        }
        if let error { throw note(error) }
        guard let last else { throw broken() }
        return last
    }

    func nextResult(until deadline: ContinuousClock.Instant) throws -> QueryResult? {
        while PQisBusy(raw) == 1 {
            let unsent = PQflush(raw)
            guard unsent >= 0 else { throw broken() }
            try wait(unsent == 1 ? POLLIN | POLLOUT : POLLIN, deadline)
            try consume()
        }
        return PQgetResult(raw).map { QueryResult(owning: $0) }
    }

    private func wait(_ events: Int32, _ deadline: ContinuousClock.Instant) throws {
        do {
            try waiter.wait(for: descriptor, events: Int16(events), until: deadline)
        } catch {
            // An answer that nobody waits for would be taken for the next statement's.
            if !isBroken { AbandonedStatements.shared.abandon(raw, of: serverName, logger: logger, level: .warning) }
            isBroken = true
            throw error
        }
    }

    func consume() throws {
        guard PQconsumeInput(raw) == 1 else { throw broken() }
    }

    func usable() throws {
        if isBroken { throw PostgresError(.connection, "The connection to Postgres is gone.") }
    }

    func note(_ error: PostgresError) -> PostgresError {
        if error.kind != .server { isBroken = true }
        return error
    }

    func broken() -> PostgresError {
        isBroken = true
        return failure()
    }

    private func failure() -> PostgresError { Self.failure(of: raw) }

    static func failure(of raw: OpaquePointer) -> PostgresError {
        PostgresError(.connection, String(cString: PQerrorMessage(raw)).trimmed)
    }
}

/// Sends Postgres' notices and warnings to the log.
private final class NoticeSink {
    private let logger: Logger

    init(logger: Logger) { self.logger = logger }

    /// The sink must outlive the connection; the connection owns it.
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

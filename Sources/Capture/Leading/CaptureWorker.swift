import Logging
import Postgres
import Schema
import Workers

/// The loop of a capture's thread: connect, wait for the lead, read and store until an error occurs, start over.
struct CaptureWorker: ~Copyable {
    private let setup: WALCapture.Setup
    private let stopSignal: StopSignal
    private let published: Published<CaptureReport>
    private let sockets: CaptureSockets
    private var reconnector: Reconnector
    private let incidents: CaptureIncidents
    /// Set once Postgres could not convert a streamed text to UTF-8: the sessions then ask for raw bytes.
    private var wantsBytes = false
    private var trials = BatchTrials<CapturePosition>()
    private var refusals: RepeatedRefusal<CapturePosition>
    /// Transactions that the walsender could not decode.
    private var decodings: RepeatedRefusal<CapturePosition>

    init(_ setup: WALCapture.Setup, _ stopSignal: StopSignal, _ published: Published<CaptureReport>) {
        self.setup = setup
        self.stopSignal = stopSignal
        self.published = published
        sockets = CaptureSockets(stopSignal)
        incidents = CaptureIncidents(logger: setup.logger)
        refusals = RepeatedRefusal(patience: setup.patience)
        decodings = RepeatedRefusal(patience: setup.patience)
        reconnector = Reconnector(
            first: setup.firstRetry, logger: setup.logger,
            lost: "Changes are not read from the WAL for now", regained: "Changes can be read from the WAL again.")
    }

    mutating func runUntilStopped() {
        while !stopSignal.isStopping {
            do {
                try runSession()
            } catch {
                if published.state == .leading, published.waitingSince == nil { published.waitingSince = .now }
                published.state = .away
                published.publishedTables = nil
                reconnector.connectionFailed(error, isStopping: stopSignal.isStopping)
                if !stopSignal.isStopping { reportProblem("changes are not read from the WAL: \(error)") }
                while !stopSignal.isStopping, !reconnector.isDue {
                    sockets.waitForInput(watching: [], until: reconnector.retryAt ?? .now)
                }
            }
        }
        published.state = .away
    }

    /// Runs one connected session.
    private mutating func runSession() throws {
        sockets.tick = {}
        let options = try ConnectionOptions(conninfo: setup.conninfo)
        let store = try PostgresConnection(options, waiter: sockets, logger: setup.logger)
        try store.runScript(CaptureSQL.sessionOfCapture)
        try Primary.demandPrimary(on: store)
        try RoostSchema.demandCurrent(on: store)
        guard let role = try awaitLead(on: store) else { return }
        let stream = try connectStream(options, as: role)
        try stream.runOnWalsender(CaptureSQL.sessionOfStream)
        let hasCharacters = store.serverEncoding != "SQL_ASCII"
        let readsBytes = wantsBytes || !hasCharacters
        if readsBytes {
            try store.runScript(CaptureSQL.rawTexts)
            try stream.runOnWalsender(CaptureSQL.rawTexts)
        }
        published.state = .preparing
        let stopSignal = stopSignal
        let slot = CaptureSlot(
            connection: store, sockets: sockets, logger: setup.logger, isStopping: { stopSignal.isStopping },
            report: setup.report)
        guard let (name, position) = try slot.findOrCreate(by: stream) else { return }
        let leader = CaptureLeader(
            stream: try startStream(name, after: position, on: stream, beside: store),
            store: try CaptureStore(
                store, from: position, log: setup.logger, incidents: incidents,
                demandsASCII: readsBytes && hasCharacters),
            slot: slot, sockets: sockets, published: published, trials: trials, refusals: refusals)
        defer { (trials, refusals) = (leader.trials, leader.refusals) }
        published.state = .leading
        reconnector.connectionOpened()
        reportProblem(nil)
        do {
            try leader.readAndStore { stopSignal.isStopping }
        } catch let refusal as DecodingRefusal where !Self.isOfCharacters(refusal.error) || readsBytes {
            try skipTransaction(refusal, slot)
        } catch let refusal as DecodingRefusal {
            wantsBytes = true
            throw refusal.error
        } catch let error as PostgresError where Self.isOfCharacters(error) && !readsBytes {
            // The same error would come again, and block the rows of all tables.
            wantsBytes = true
            throw error
        } catch let error as NameBeyondASCII {
            wantsBytes = false
            throw error
        }
    }

    /// True for a byte sequence that is invalid in the database's encoding, or that has no equivalent in UTF-8.
    private static func isOfCharacters(_ error: PostgresError) -> Bool {
        ["22P05", "22021"].contains(error.sqlState)
    }

    /// Skips a transaction that Postgres cannot decode, once that is certain or has recurred for long.
    ///
    /// - Throws: the error, if the same slot is tried again or another one has to be created.
    private mutating func skipTransaction(_ refusal: DecodingRefusal, _ slot: CaptureSlot) throws {
        decodings.requestRefused(at: refusal.position, at: .now)
        guard refusal.isForGood || refusal.mayBeOfChange && decodings.isLasting(at: .now) else { throw refusal.error }
        decodings.requestPassed()
        if let commit = refusal.passable { return try slot.skipTransaction(commit, because: refusal.error) }
        try slot.giveUp()
        throw refusal.error
    }

    /// Waits until there are tables to read and no other hub leads.
    ///
    /// - Returns: this session's role, quoted; nil if the hub stops meanwhile.
    private mutating func awaitLead(on store: PostgresConnection) throws -> String? {
        var hasWarned = false
        while !stopSignal.isStopping {
            let found = try store.query(CaptureSQL.requirements)
            let tables = Int(found.integer(0, 2) ?? 0)
            published.publishedTables = tables
            // This holds for the last table, too: changes committed before its removal are read, and then the slot is
            // dropped.
            if tables > 0 || found.flag(0, 4) {
                try demandLogicalWAL(found)
                if try store.query(CaptureSQL.tryLead).flag(0, 0) { return found.text(0, 3) ?? "" }
                published.state = .following
                published.waitingSince = nil
                let ended = try store.query(CaptureSQL.leaderThatHangs, [String(setup.silence.components.seconds)])
                if ended.count > 0 {
                    if !hasWarned {
                        setup.logger.warning("The hub that read the WAL no longer responds: this one takes over.")
                        hasWarned = true
                    }
                    // The backend takes a moment to end, and a frozen one ends only when it resumes.
                    sockets.waitForInput(watching: [store.descriptor], until: .now + .milliseconds(50))
                    continue
                }
            } else {
                published.state = .idle
                published.waitingSince = nil
            }
            reconnector.connectionOpened()
            reportProblem(nil)
            sockets.waitForInput(watching: [store.descriptor], until: .now + setup.interval)
            // The only unsolicited input is the end of the session.
            if !store.isSilent { _ = try store.query("select 1") }
        }
        return nil
    }

    private func demandLogicalWAL(_ found: QueryResult) throws {
        guard found.text(0, 0) == "logical" else {
            throw PostgresError(
                .server,
                """
                wal_level is \(found.text(0, 0) ?? "unknown"): set wal_level = logical in postgresql.conf and restart Postgres, \
                or run `roost watch` with feed.capture: triggers
                """)
        }
    }

    /// Opens a walsender's session. Only an attempt shows whether the role may have one: some providers grant it by a
    /// role of their own.
    private func connectStream(_ options: ConnectionOptions, as role: String) throws -> PostgresConnection {
        do {
            return try PostgresConnection(replicating: options, waiter: sockets, logger: setup.logger)
        } catch let error as PostgresError
            where error.message.contains("replication role")
            || error.message.contains("start WAL sender")
        {
            throw PostgresError(
                .connection,
                "the role \(role) may not replicate; run `alter role \(role) replication` (a managed Postgres may have a role "
                    + "of its own to grant instead, such as rds_replication)")
        }
    }

    /// Starts streaming. Ends any other session that reads the slot, as this one leads.
    private func startStream(
        _ slot: String, after position: CapturePosition, on connection: PostgresConnection,
        beside store: PostgresConnection
    ) throws -> CaptureStream {
        let end = ContinuousClock.now + .seconds(8)
        while true {
            do {
                return try CaptureStream(of: slot, after: position, on: connection)
            } catch let error as PostgresError where error.sqlState == SQLState.objectInUse && ContinuousClock.now < end
            {
                _ = try store.query(CaptureSQL.endReader)
                sockets.waitForInput(watching: [], until: .now + .milliseconds(100))
            }
        }
    }

    private func reportProblem(_ problem: String?) { setup.report(problem) }
}

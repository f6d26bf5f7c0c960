import Hub
import Logging
import Matching
import Postgres
import Wire
import Workers

/// One connected life of the authority: one connection evaluates the policies, the other reads the catalog and replayed
/// messages.
final class AuthoritySession {
    private let reader: PostgresConnection
    private var engine: PolicyEngine
    private var messages: MessagesTable?
    private var looksAgainAt = ContinuousClock.now
    /// Roles' privileges as found under the present version.
    private var readers: [Name: Bool] = [:]

    /// Maximum age of the policies' version that answers are based on.
    private static let freshness = Duration.milliseconds(250)
    private static let limit = Duration.seconds(2)
    /// Limit of all replays of a batch. Each has the session's `statement_timeout`.
    private static let replaysLimit = Duration.seconds(3)

    init(conninfo: String, logger: Logger) throws {
        let options = try ConnectionOptions(conninfo: conninfo)
        reader = try PostgresConnection(options, waiter: PlainWaiter(), logger: logger, within: Self.limit)
        try reader.runScript(AuthoritySQL.sessionOfAuthority, within: Self.limit)
        var limits = PolicyLimits()
        limits.network = Self.limit
        engine = PolicyEngine(conninfo: conninfo, logger: logger, limits: limits)
    }

    var isBroken: Bool { reader.isBroken }

    /// Answers questions and removes them from `batch`; questions that a failure leaves there have not been answered.
    ///
    /// - Throws: `PostgresError` if the policies cannot be evaluated.
    func answerBatch(_ batch: inout [PendingQuestion], _ log: inout RateLimitedLog) throws {
        try refreshVersion()
        guard let messages else {
            log.logWarning(
                "There is no table realtime.messages, so nobody can join private channels; run `roost migrate`.")
            for pending in batch { pending.answer(.unavailable) }
            batch = []
            return
        }
        let probes = ProbeBatch(batch, of: messages)
        let answers = try engine.answers(to: probes.questions, version: messages.version)
        for sentence in answers.flatMap(\.problems) { log.logWarning(sentence) }
        var rights = probes.allowedRights(answers, count: batch.count)
        let locked = probes.lockedPlaces(answers)
        for place in locked { batch[place].answer(.unavailable) }
        let faults = probes.findFaults(answers)
        for (place, fault) in faults where isWanting(rights[place], batch[place].question.right) {
            batch[place].answer(.failed(fault))
        }
        let open = batch.indices.filter { place in
            !locked.contains(place) && (faults[place] == nil || !isWanting(rights[place], batch[place].question.right))
        }
        (batch, rights) = (open.map { batch[$0] }, open.map { rights[$0] })
        for (place, pending) in batch.enumerated() {
            guard case .read = pending.question.right, !rights[place].isEmpty,
                try !mayRead(pending.question.claims.role, messages, &log)
            else { continue }
            rights[place] = []
        }
        // From here, each answer is given as soon as it is ready, the slower ones last.
        var replays: [(PendingQuestion, ReplayRequest, ChannelExtensions)] = []
        for (pending, rights) in zip(batch, rights) {
            if case .read(let replay?) = pending.question.right, rights.contains(.broadcast) {
                replays.append((pending, replay, rights))
            } else {
                pending.answer(.decided(rights))
            }
        }
        batch = replays.map(\.0)
        let deadline = ContinuousClock.now + Self.replaysLimit
        for (pending, request, rights) in replays {
            // Other joins wait meanwhile: a client whose replay is not reached comes again.
            let outcome =
                ContinuousClock.now < deadline
                ? try replayMessages(request, of: pending.question.topic, rights, &log) : .replayFailed
            batch.removeFirst()
            pending.answer(outcome)
        }
    }

    /// True if the rights amount to a refusal of the request.
    private func isWanting(_ rights: ChannelExtensions, _ right: AuthorizationQuestion.Right) -> Bool {
        switch right {
        case .read: rights.isEmpty
        case .write(let need): rights.isDisjoint(with: need)
        }
    }

    /// Refreshes the policies' version, so that a recent change counts.
    private func refreshVersion() throws {
        guard looksAgainAt <= .now else { return }
        // Set before the read: a change made during the read is found by the next refresh.
        looksAgainAt = .now + Self.freshness
        let found = MessagesTable(try reader.query(AuthoritySQL.messagesTable, within: Self.limit))
        if found?.version != messages?.version { readers = [:] }
        messages = found
    }

    /// Makes the next answer use the policies of that moment, rather than those of up to `freshness` ago.
    func expireVersion() { looksAgainAt = .now }

    /// True if the role has the privileges that a SELECT needs besides its policies.
    private func mayRead(_ role: Name, _ messages: MessagesTable, _ log: inout RateLimitedLog) throws -> Bool {
        if let known = readers[role] { return known }
        let result = try reader.query(
            AuthoritySQL.messagesReader, ["\(messages.table.oid)", role.text], within: Self.limit)
        let may = result.count == 1 && result.flag(0, 0)
        if !may {
            let name = SQLText.identifier(role)
            log.logWarning(
                "The role \(name) may not read realtime.messages, so its users cannot join private channels; if they "
                    + "should, run: grant usage on schema realtime to \(name); "
                    + "grant select on realtime.messages to \(name)")
        }
        readers[role] = may
        return may
    }

    private func replayMessages(
        _ request: ReplayRequest, of topic: String, _ rights: ChannelExtensions, _ log: inout RateLimitedLog
    ) throws -> AuthorizationOutcome {
        do {
            let statement = messages?.hasExpiry == true ? AuthoritySQL.replayUnexpired : .replay
            let rows = try reader.query(
                statement, [topic, "\(request.since)", "\(request.limit)"], within: Self.limit)
            return .decided(rights, replay: (0..<rows.count).reversed().compactMap { ReplayedMessage(rows, $0) })
        } catch let error as PostgresError where error.kind != .connection {
            log.logWarning(
                "Messages of private channels cannot be replayed (\(error.message)); `roost doctor` tells what the hub's "
                    + "role needs.")
            if reader.isBroken { throw error }
            return .replayFailed
        }
    }
}

extension ReplayedMessage {
    /// A row of `Replay in Authority.sql`.
    ///
    /// - Returns: nil for a row without an id or a payload, which is not a message.
    init?(_ rows: QueryResult, _ row: Int) {
        guard let id = rows.text(row, 0) else { return nil }
        let body: Body
        if let digits = rows.bytes(row, 3), let bytes = Hexadecimal.parseBytea(digits) {
            body = .binary(bytes)
        } else if let json = rows.bytes(row, 2) {
            body = .json(Array(json))
        } else {
            return nil
        }
        self.init(id: id, event: rows.text(row, 1) ?? "", body: body)
    }
}

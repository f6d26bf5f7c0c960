import Cluster
import DequeModule
import Glibc
import Hub
import Logging
import Redis
import Workers

/// The life of the cluster's thread: keeps the link, writes the loops' messages, passes on what arrives, judges which hubs are there.
///
/// Owns the state machines and carries out their requests; the rules are theirs: `LogReader`, `LogWriter`, `PeerTable`
/// (room `Cluster`) and `ClusterState`.
struct ClusterWorker: ~Copyable {
    typealias Instant = ContinuousClock.Instant

    let setup: ClusterService.Setup
    let sink: any PeerSink
    let mailbox: WorkerMailbox<ClusterMail>
    private let stopSignal: StopSignal
    let published: Published<ClusterStatistics>
    let keys: LogKeys
    let scripts: LogScripts
    let link: RedisLink
    var reader: LogReader
    var writer: LogWriter
    var peers: PeerTable
    var state: ClusterState
    var statistics = ClusterStatistics()
    private var rules: PresenceRules
    /// The requests that replies of Redis answer, by tag.
    var questions: [UInt64: ClusterQuestion] = [:]
    private var lastTag: UInt64 = 0
    var peerQuestions = PeerQuestions()
    var userCopies = UserCopies()
    /// Relays of other hubs, about to be handed to the loops.
    private var heard: [Relay] = []
    /// This hub's newest message that the log has returned.
    var ownApplied: UInt64 = 0
    /// Callers that wait until the log has returned this hub's message of that number.
    var headWaiters: [(sequence: UInt64, done: @Sendable (Bool) -> Void)] = []
    /// The newest sequence of this hub when the log was opened.
    var openedThrough: UInt64 = 0
    /// The place in the log of the message being applied.
    private var place: HistoryPlace?
    /// The hubs whose members are being copied.
    var pulls: [HubIdentity: PresencePull] = [:]
    /// Questions of other hubs about who is present here, and the bytes of answers that Redis has not taken yet.
    var presenceQuestions: Deque<WaitingPresenceQuestion> = []
    var untakenPieces = 0
    var pace = WritePace()
    var nextBeat = Instant.now
    var nextFigures = Instant.now
    var nextPeers = Instant.now
    /// Monotonic milliseconds.
    let startedAt = milliseconds
    var (said, heardOf) = (BeatRate(), BeatRate())
    /// Log entries that this hub had not yet read at its last check.
    var behind = 0
    /// Lines of the subscription, and messages, that were unreadable.
    var damagedLines: UInt64 = 0
    var isDamageTold = false
    /// When a hub that sends unreadable data was last logged.
    var damageNamedAt: Instant?
    var beats: UInt64 = 0
    var isDraining = false
    var isRefused = false
    /// This hub holds its name: nothing is written before that.
    var hasLease = false
    /// The other process that holds the name, and since when.
    var takenSince: (holder: UInt64, at: Instant)?
    var isLeaving = false
    /// The link rejected a request.
    var isOverfull = false
    /// When the log was last opened; limits how often it is opened.
    var openedAt: Instant?

    init(
        _ setup: ClusterService.Setup, _ sink: any PeerSink, _ mailbox: WorkerMailbox<ClusterMail>,
        _ stopSignal: StopSignal, _ published: Published<ClusterStatistics>
    ) {
        self.setup = setup
        self.sink = sink
        self.mailbox = mailbox
        self.stopSignal = stopSignal
        self.published = published
        rules = setup.rules
        keys = LogKeys(cluster: setup.cluster)
        scripts = LogScripts(keys)
        link = RedisLink(
            setup.address, name: "roost-\(setup.own.name)", channels: [keys.channel, keys.channel(of: setup.own.name)],
            scripts: LogScripts.all, at: .now)
        var limits = LogReader.Limits()
        limits.logBytes = setup.logBytes
        reader = LogReader(own: setup.own, limits: limits)
        reader.sentThrough = 0
        writer = LogWriter(own: setup.own)
        peers = PeerTable(own: setup.own)
        state = ClusterState(boot: setup.own.boot)
        setup.shared.userTally.startReporting { [mailbox] in mailbox.post { _ in } }
    }

    mutating func runUntilStopped() {
        setup.report("the other hubs have not been reached yet")
        while !stopSignal.isStopping {
            runTurn(at: .now)
            waitForEvents()
        }
        sayGoodbye()
        finishQuestions(peerQuestions.endAll(), at: .now)
        let left = mailbox.takeMail { mail in
            mail.isClosed = true
            defer { (mail.questions, mail.headWaiters) = ([], []) }
            return mail
        }
        for done in headWaiters.map(\.done) + left.headWaiters { done(false) }
        for question in left.questions { question.done((question.hubs ?? []).map { PeerAnswer(hub: $0, body: nil) }) }
        published.value = statistics
    }

    private mutating func runTurn(at now: Instant) {
        writer.isHeld = pace.isHeld(at: now)
        if !pace.isDeaf(at: now) {
            takeMail(at: now)
            if writer.isHeld, writer.isDue { pace.markBusy() }
        }
        tellUsers()
        takeFigures(at: now)
        for event in link.makeProgress(at: now) { handleEvent(event, at: now) }
        if link.isWhole, now >= nextBeat { hasLease ? sendBeat(at: now) : askForName(at: now) }
        var actions: [LogWriterAction] = []
        writer.flush(at: Self.milliseconds, &actions)
        performWriterActions(actions, at: now)
        replaceOverfull(at: now)
        expireQuestions(at: now)
        handOn()
        publishStatistics(at: now)
        tellHeadWaiters()
    }

    /// Writes waiting messages and says good-bye, as far as time allows.
    private mutating func sayGoodbye() {
        guard writer.isOpen, let deadline = stopSignal.deadline else { return }
        while writer.waiting > 0, writer.isOpen, .now < deadline {
            runTurn(at: .now)
            waitForEvents(until: deadline)
        }
        isLeaving = true
        sendBeat(at: .now)
        isLeaving = link.queueCommand(["DEL", .text(keys.lease(of: setup.own.name))], tag: newTag(.bye), at: .now)
        while isLeaving, link.isWhole, .now < deadline {
            for event in link.makeProgress(at: .now) { handleEvent(event, at: .now) }
            waitForEvents(until: deadline)
        }
    }

    // MARK: Messages of the loops

    private mutating func takeMail(at now: Instant) {
        let mail = mailbox.takeMail { mail in
            defer {
                (mail.posts, mail.questions, mail.answers, mail.userCounts) = ([], [], [], [])
                mail.headWaiters = []
            }
            return mail
        }
        if mail.isDraining { isDraining = true }
        if let rules = mail.rules { self.rules = rules }
        for post in mail.posts {
            for relay in post.relays {
                var out: [ClusterState.Output] = []
                let (log, history) = (setup.shared.presenceLog, setup.shared.history)
                state.publishRelay(
                    relay, by: post.loop, at: Self.milliseconds, shortest: isDraining ? setup.restartWindow : 0,
                    record: { log?.record($0) },
                    wish: { history.wish(for: $0) }, &out)
                place = nil
                performOutputs(out)
            }
        }
        for question in mail.questions { askPeers(question, at: now) }
        for answer in mail.answers { sendAnswer(answer, at: now) }
        for answer in mail.userCounts { receiveUserAnswer(answer, at: now) }
        awaitHead(mail.headWaiters)
    }

    // MARK: Messages of the log

    mutating func applyMessages(_ applied: AppliedMessages) {
        let history = setup.shared.history
        var found: [PeerTableAction] = []
        peers.noteMessages(applied.hub, since: applied.since, at: Self.milliseconds, &found)
        performPeerActions(found, at: .now)
        let entry = Int(applied.place.offset) + 1
        for (offset, bytes) in applied.messages.enumerated() {
            place = history.advanceLog(history: applied.place.epoch, entry: entry, index: applied.index + offset + 1)
            statistics.received += applied.isOwn ? 0 : 1
            if applied.isOwn { ownApplied = applied.sequence + UInt64(offset) }
            do {
                guard let message = try PeerMessage(bytes) else { continue }
                if case .users(let counts) = message { receiveUserCounts(counts, of: applied.hub) }
                // A message from before the channel was kept is missing from its history here, while other hubs may have it.
                if applied.isOwn, case .broadcast(let key, _) = message { history.recordLoss(key, at: Self.now) }
                var out: [ClusterState.Output] = []
                state.receiveMessage(message, from: applied.hub.boot, at: Self.milliseconds, &out)
                performOutputs(out)
            } catch {
                reportUnreadable(applied.hub, at: .now)
            }
        }
        place = nil
    }

    /// Reports messages that this hub will never have.
    mutating func reportGap(_ gap: LogGap) {
        statistics.gaps += 1
        userCopies.restartCopies(peers.living)
        let name = gap.hub?.name ?? "a hub that is not known here"
        setup.logger.warning("Messages from \(name) are missing (\(gap.reason)): members are told.")
        performOutputs([.hear(.missing)])
    }

    mutating func performOutputs(_ out: [ClusterState.Output]) {
        let shared = setup.shared
        for output in out {
            switch output {
            case .tell(let message): writeMessage(message)
            case .hear(.broadcast(let key, let message)):
                let broadcast = OrderedBroadcast(message)
                let isKept = place.map { shared.history.append(broadcast, to: key, at: $0, Self.now) } ?? false
                heard.append(isKept ? .ordered(key, broadcast, isNumbered: true) : .broadcast(key, message))
            case .hear(.missing):
                shared.history.recordLoss(at: Self.now)
                heard.append(.missing)
            case .hear(let relay): heard.append(relay)
            case .number(let key, let broadcast, let isOwn):
                let isNews = shared.history.append(broadcast, to: key, at: place, Self.now)
                if isOwn { shared.history.countArrived(key) }
                // A message sent by SQL arrives once from each hub.
                if isNews || broadcast.databaseID == nil {
                    heard.append(.ordered(key, broadcast, isNumbered: true))
                }
            case .conclude(let conclusion, let member, let key, let loop):
                // After everything already said about the member.
                handOn()
                sink.concludeLease(conclusion, of: member, in: key, loop: loop)
            case .offer(let lease):
                handOn()
                shared.leases.offerLeases([lease])
            case .withdraw(let member, let place): shared.leases.remove(member, of: place)
            case .extend(let member, let place, let until): shared.leases.expectOwner(member, of: place, until: until)
            case .keep(let key, let wish, let hub):
                shared.history.keepChannel(key, wish, for: hub, chance: .random(in: .min ... .max), at: Self.now)
            case .lack(let key): shared.history.recordLoss(key, at: Self.now)
            case .record(let record): shared.presenceLog?.putRecord(record)
            case .forget(let ref): shared.presenceLog?.remove(ref)
            }
        }
    }

    mutating func writeMessage(_ message: PeerMessage) {
        var actions: [LogWriterAction] = []
        if writer.append(message.encoded, at: Self.milliseconds, &actions) == nil {
            setup.logger.warning("A message is too large for the other hubs: clients there do not get it.")
            if case .ordered = message {
                var out: [ClusterState.Output] = []
                state.newestIsTooLarge(&out)
                performOutputs(out)
            }
        }
        performWriterActions(actions, at: .now)
    }

    private mutating func handOn() {
        guard !heard.isEmpty else { return }
        sink.receiveRelays(heard)
        heard.removeAll(keepingCapacity: true)
    }

    // MARK: Other hubs

    mutating func performPeerActions(_ actions: [PeerTableAction], at now: Instant) {
        if !actions.isEmpty { nextPeers = now }
        for action in actions {
            var out: [ClusterState.Output] = []
            switch action {
            case .joined(let hub):
                setup.logger.info("The hub \(hub.name) is connected\(version(of: hub)).")
                state.hubReturned(hub.boot, &out)
                userCopies.startCopy(hub)
                pullMembers(from: hub, at: now)
            case .left(let hub):
                setup.logger.info("The hub \(hub.name) has left.")
                removeHub(hub, drained: true, &out)
            case .died(let end):
                setup.logger.warning("The hub \(end.hub.name) died: its members count as present for their windows.")
                hubDied(end, at: now, &out)
            case .diedLater(let end): hubDied(end, at: now, &out)
            case .nameTaken: nameIsTaken()
            case .askSnapshot(let hub): pullMembers(from: hub, at: now)
            }
            performOutputs(out)
        }
    }

    private mutating func hubDied(_ end: HubBeat.Ended, at now: Instant, _ out: inout [ClusterState.Output]) {
        removeHub(end.hub, drained: false, &out)
        var actions: [LogReaderAction] = []
        reader.publisherEnded(end, now: Self.milliseconds, &actions)
        performReaderActions(actions, at: now)
    }

    /// The hub's version, if it differs from this one's.
    private func version(of hub: HubIdentity) -> String {
        guard let version = peers.peers[hub]?.beat?.software, version != setup.version else { return "" }
        return ", of version \(version); this one is \(setup.version)"
    }

    private mutating func removeHub(_ hub: HubIdentity, drained: Bool, _ out: inout [ClusterState.Output]) {
        let (rules, restart) = (rules, setup.restartWindow)
        state.hubDied(
            hub.boot, at: Self.milliseconds,
            window: { key, state in drained ? restart : rules.windows(of: key)[state] },
            isCoordinator: peers.isCoordinator, &out)
        userCopies.removeCopy(hub)
        setup.shared.userTally.removePeer(hub: hub.boot)
        finishQuestions(peerQuestions.endQuestions(hub), at: .now)
        setup.shared.history.removePeer(hub: hub.boot, at: Self.now)
    }

    /// The coordinator ends overdue members of gone hubs. If it started after they had gone and knows none of them, the
    /// next hub does it; of several ends, the first in the log counts.
    mutating func endOverdue() {
        let living = Set(peers.living.map(\.boot) + [setup.own.boot])
        var out: [ClusterState.Output] = []
        state.endOverdue(of: { !living.contains($0) }, at: Self.milliseconds, rank: peers.rank, &out)
        performOutputs(out)
    }

    mutating func receiveDirect(_ message: DirectMessage, at now: Instant) {
        do {
            switch try DirectPayload(message.payload) {
            case nil: break
            case .question(let id, let subject, let body):
                receiveQuestion(id, subject, body, from: message.sender, at: now)
            case .answer(let id, let body):
                if let done = peerQuestions.receiveAnswer(id, by: message.sender, with: body) {
                    finishQuestions([done], at: now)
                }
            }
        } catch {
            reportUnreadable(message.sender, at: now)
        }
    }

    /// - Parameter question: the purpose of the request to Redis.
    /// - Returns: whether the link accepted it. A lost message is requested again by the hub that waits for it.
    @discardableResult
    mutating func sendDirect(
        _ payload: DirectPayload, to hub: HubIdentity, after sequence: UInt64?,
        for question: ClusterQuestion = .nothing,
        at now: Instant
    ) -> Bool {
        let message = DirectMessage(
            sender: setup.own, receiver: hub.boot, afterSequence: sequence, payload: payload.encoded[...])
        return link.queueCommand(
            ["PUBLISH", .text(keys.channel(of: hub.name)), .bytes(PublishedMessage.encode(message))],
            tag: newTag(question), at: now)
    }

    // MARK: Waiting

    /// - Parameter end: nil unless the service is stopping.
    private mutating func waitForEvents(until end: Instant? = nil) {
        let isDeaf = pace.isDeaf(at: .now)
        // Stays readable once it signals the stop.
        let signals = [end == nil ? stopSignal.descriptor : -1, isDeaf ? -1 : mailbox.descriptor]
        var polled = signals.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
        link.preparePoll(into: &polled)
        var deadline = min(link.deadline ?? .now + .seconds(1), end ?? .now + .seconds(1))
        if link.isWhole { deadline = min(deadline, nextBeat) }
        if isDeaf || writer.isDue { deadline = min(deadline, pace.opensAt) }
        if let due = peerQuestions.deadline {
            deadline = min(deadline, .now + .milliseconds(max(0, due - Self.milliseconds)))
        }
        Workers.poll(&polled, until: deadline)
    }

    mutating func newTag(_ question: ClusterQuestion) -> UInt64 {
        lastTag += 1
        questions[lastTag] = question
        return lastTag
    }

    /// Monotonic, like the hub's time.
    static var milliseconds: Int64 { now.monotonic }

    static var now: HubTime {
        var (monotonic, wall) = (timespec(), timespec())
        clock_gettime(CLOCK_MONOTONIC, &monotonic)
        clock_gettime(CLOCK_REALTIME, &wall)
        return HubTime(
            monotonic: Int64(monotonic.tv_sec) * 1000 + Int64(monotonic.tv_nsec) / 1_000_000,
            unix: Int64(wall.tv_sec) * 1000 + Int64(wall.tv_nsec) / 1_000_000)
    }
}

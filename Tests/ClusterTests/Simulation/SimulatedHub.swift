import Cluster

/// One run of one hub: what stands between the state machines and the engine, as the room `Clustering` does it, and a
/// record of all that came out.
final class SimulatedHub {
    let identity: HubIdentity
    unowned let simulation: Simulation
    private(set) var reader: LogReader
    private(set) var writer: LogWriter
    private(set) var peers: PeerTable
    var record = HubRecord()
    var isAlive = true
    private(set) var command: SimulatedLink?
    private(set) var subscription: SimulatedLink?
    private var frozenUntil: Int64 = 0
    private var backlog: [() -> Void] = []
    private var beats: UInt64 = 0
    private var openedAt: Int64 = -1_000_000
    private var isConnecting = false
    private var isFetching = false
    private let skew: Int64

    init(_ identity: HubIdentity, _ simulation: Simulation) {
        self.identity = identity
        self.simulation = simulation
        reader = LogReader(own: identity, limits: simulation.configuration.reader)
        writer = LogWriter(own: identity, limits: simulation.configuration.writer)
        peers = PeerTable(own: identity)
        skew = simulation.random(-50...50)
    }

    // MARK: - Its own life

    func start() {
        connect()
        beat()
        load()
    }

    /// Everything that happens to a hub happens when it is not frozen.
    func perform(_ work: @escaping () -> Void) {
        guard isAlive else { return }
        if frozenUntil > simulation.now || !backlog.isEmpty { backlog.append(work) } else { work() }
    }

    func freeze(for duration: Int64) {
        frozenUntil = max(frozenUntil, simulation.now + duration)
        simulation.after(frozenUntil - simulation.now) { [self] in
            guard frozenUntil <= simulation.now else { return }
            // What came first is done first, and what the work brings about is done behind it.
            var done = 0
            while done < backlog.count, isAlive {
                let work = backlog[done]
                done += 1
                work()
            }
            backlog = []
        }
    }

    func thaw() { if frozenUntil > simulation.now { frozenUntil = simulation.now; freeze(for: 0) } }

    func kill() {
        isAlive = false
        command?.closedByHub = true
        subscription?.closedByHub = true
        backlog = []
    }

    private func every(_ delay: @escaping () -> Int64, _ work: @escaping () -> Void) {
        simulation.after(delay()) { [self] in
            guard isAlive else { return }
            perform(work)
            every(delay, work)
        }
    }

    private func load() {
        every({ [simulation] in simulation.random(5_000...60_000) }) { [self] in
            guard simulation.isLoaded, record.since != nil else { return }
            send(Int(simulation.random(1...3)))
        }
    }

    /// Each message says who sent it as which, so that what is applied can be checked.
    func send(_ count: Int, padding: Int = 0) {
        var actions: [LogWriterAction] = []
        for _ in 0..<count {
            let text = "\(identity.boot) \(writer.lastSequence + 1) "
            let message = Array(text.utf8) + [UInt8](repeating: 0x2e, count: padding)
            guard writer.append(message, at: simulation.milliseconds, &actions) != nil else { continue }
            simulation.accepted[identity.boot, default: []].append(simulation.now)
        }
        writer.flush(at: simulation.milliseconds, &actions)
        run(actions)
    }

    // MARK: - Links

    private func connect() {
        guard !isConnecting, command == nil else { return }
        isConnecting = true
        simulation.after(simulation.random(50_000...250_000)) { [self] in
            perform { [self] in
                isConnecting = false
                let engine = simulation.address()
                guard engine.isUp else { return connect() }
                command = SimulatedLink(simulation, engine, self)
                subscribe(engine) { [self] in open() }
            }
        }
    }

    private func subscribe(_ engine: SimulatedEngine, _ then: @escaping () -> Void) {
        let link = SimulatedLink(simulation, engine, self)
        subscription = link
        link.request({ _ in link.isSubscribed = true }, then)
    }

    private func open() {
        let time = UInt64(1_700_000_000_000 + simulation.milliseconds + skew)
        openedAt = simulation.now
        command?.request({ engine in try? engine.open(now: time) }) { [self] head in
            guard let head else { return disconnect() }
            record.since = record.since ?? simulation.now
            var actions: [LogReaderAction] = []
            reader.logOpened(head, now: simulation.milliseconds, &actions)
            peers.linkBecameWhole(epoch: head.place.epoch, at: simulation.milliseconds)
            run(actions)
        }
    }

    /// Both connections are made anew.
    func disconnect() {
        command?.closedByHub = true
        subscription?.closedByHub = true
        (command, subscription) = (nil, nil)
        reader.linkWasLost()
        writer.linkWasLost()
        peers.linkWasLost()
        connect()
    }

    func lost(_ link: SimulatedLink) {
        if link === command { return disconnect() }
        guard link === subscription, let engine = command?.engine else { return }
        // The other connection may be well: what came meanwhile is found by its head.
        peers.linkWasLost()
        guard engine.isUp, writer.isOpen else { return disconnect() }
        subscribe(engine) { [self] in
            if let epoch = reader.epoch { peers.linkBecameWhole(epoch: epoch, at: simulation.milliseconds) }
            confirmHead()
        }
    }

    private func beat() {
        every({ 500_000 }) { [self] in
            guard let command, let subscription else { return }
            let oldest = simulation.now - 1_500_000
            if command.heardAt < oldest || subscription.heardAt < oldest { return disconnect() }
            keepLease()
            confirmHead()
            guard let place = writer.place, let since = writer.since else { return }
            beats += 1
            let beat = HubBeat(
                hub: identity, number: beats, since: since, base: writer.base, place: place, settled: writer.settled,
                digest: writer.lastSequence, digestSequence: writer.lastSequence,
                ended: peers.recentDeaths(at: simulation.milliseconds))
            publish(PublishedMessage.encode(beat))
            for peer in peers.living where simulation.chance(30) {
                let text = Array("\(writer.lastSequence)".utf8)
                let direct = DirectMessage(
                    sender: identity, receiver: peer.boot, afterSequence: writer.lastSequence, payload: text[...])
                publish(PublishedMessage.encode(direct))
            }
        }
    }

    private func publish(_ message: [UInt8]) {
        command?.request({ engine in engine.publish(message[...]) }) { _ in }
    }

    private func keepLease() {
        let names = peers.namesToAsk
        let (identity, now) = (identity, simulation.milliseconds)
        command?.request({ engine -> [String: UInt64?] in
            engine.leases = engine.leases.filter { $0.value.until > now }
            if engine.leases[identity.name]?.boot ?? identity.boot == identity.boot {
                engine.leases[identity.name] = (identity.boot, now + 3_000)
            }
            return names.reduce(into: [:]) { $0.updateValue(engine.leases[$1]?.boot, forKey: $1) }
        }) { [self] leases in
            var actions: [PeerTableAction] = []
            peers.updateLeases(leases, at: simulation.milliseconds, &actions)
            run(actions)
        }
    }

    private func confirmHead() {
        guard simulation.configuration.mutation != .noBeats else { return }
        command?.request({ engine in engine.meta?.head }) { [self] head in
            subscription?.request({ _ in () }) { [self] in
                var actions: [LogReaderAction] = []
                reader.confirmHead(head, now: simulation.milliseconds, &actions)
                run(actions)
            }
        }
    }

    // MARK: - What comes, and what is to be done

    func received(_ bytes: ArraySlice<UInt8>) {
        guard case .value(let message) = PublishedMessage.decode(bytes) else { return record.undecoded += 1 }
        var actions: [LogReaderAction] = []
        let now = simulation.milliseconds
        switch message {
        case .entry(let entry): reader.receivePublished(entry, now: now, &actions)
        case .direct(let direct): reader.receiveDirect(direct, &actions)
        case .beat(let beat):
            record.heardAt[beat.hub.boot] = simulation.now
            var verdicts: [PeerTableAction] = []
            peers.receiveBeat(beat, at: now, &verdicts)
            run(verdicts)
            if simulation.configuration.mutation != .noBeats { reader.receiveBeat(beat, now: now, &actions) }
        }
        run(actions)
    }

    private func run(_ actions: [PeerTableAction]) {
        for action in actions {
            let end: HubBeat.Ended
            switch action {
            case .died(let said):
                end = said
                record.deaths += 1
                if simulation.hubs.contains(where: { $0.identity == end.hub }) { record.falseDeaths += 1 }
            case .diedLater(let said): end = said
            default: continue
            }
            var told: [LogReaderAction] = []
            reader.publisherEnded(end, now: simulation.milliseconds, &told)
            run(told)
        }
    }

    private func run(_ actions: [LogWriterAction]) {
        for action in actions {
            switch action {
            case .publish(let call):
                command?.request({ engine -> Result<LogPlace, SimulatedEngine.Refusal> in
                    do throws(SimulatedEngine.Refusal) {
                        let entry = try engine.write(epoch: call.epoch, tag: call.tag, batch: call.batch)
                        engine.publish(PublishedMessage.encode(entry)[...])
                        return .success(entry.place)
                    } catch { return .failure(error) }
                }) { [self] answer in
                    var actions: [LogWriterAction] = []
                    switch answer {
                    case .success(let place): writer.publishSucceeded(place, at: simulation.milliseconds, &actions)
                    case .failure(.epoch): writer.publishFailed(.epoch, at: simulation.milliseconds, &actions)
                    case .failure(.notMaster): disconnect()
                    }
                    run(actions)
                }
            case .reopen: reopen()
            case .dropped(let range): record.dropped += range.count
            }
        }
    }

    private func reopen() {
        if simulation.now - openedAt < 300_000 { disconnect() } else { open() }
    }

    private func run(_ actions: [LogReaderAction]) {
        for action in actions {
            switch action {
            case .apply(let messages):
                record.apply(messages, isHealing: isFetching)
                record.heardAt[messages.hub.boot] = simulation.now
                var verdicts: [PeerTableAction] = []
                peers.noteMessages(messages.hub, since: messages.since, at: simulation.milliseconds, &verdicts)
                run(verdicts)
            case .fetch(let fetch):
                command?.request({ engine in engine.range(after: fetch.after, count: fetch.count) }) { [self] entries in
                    var actions: [LogReaderAction] = []
                    let reachedEnd = entries.count < fetch.count
                    reader.receiveFetched(
                        fetch.id, entries, reachedEnd: reachedEnd, now: simulation.milliseconds, &actions)
                    isFetching = true
                    run(actions)
                    isFetching = false
                }
            case .tellGap(let gap) where gap.missing != nil && simulation.configuration.mutation == .noSequences: break
            case .tellGap(let gap): record.tell(gap, at: simulation.now)
            case .forked(let place): record.fork(after: place)
            case .reopen: reopen()
            case .caughtUp(let head):
                var actions: [LogWriterAction] = []
                let own = simulation.configuration.mutation == .noResend ? writer.lastSequence : head.ownSequence
                writer.logReopened(head.place, ownSequence: own, at: simulation.milliseconds, &actions)
                run(actions)
            case .deliver(let direct):
                record.delivered += 1
                if let last = record.last(of: direct.sender.boot), last != direct.afterSequence {
                    record.misplaced += 1
                }
            case .stale: record.stale += 1
            case .compareDigest(let hub, let sequence, let digest):
                record.compared += 1
                if digest != sequence || record.last(of: hub.boot) ?? sequence != sequence { record.misplaced += 1 }
            }
        }
    }
}

extension SimulatedEngine {
    /// To all who have subscribed. One channel stands for all: hubs tell by the message whether it is theirs.
    func publish(_ message: ArraySlice<UInt8>) {
        for link in links where link.isSubscribed {
            if link.dropNext > 0 {
                link.dropNext -= 1
            } else {
                link.deliver { link.hub.received(message) }
            }
        }
    }
}

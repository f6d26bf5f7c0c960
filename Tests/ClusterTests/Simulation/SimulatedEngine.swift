import Cluster

/// What hubs use of Redis: a stream, the key that says where its head is, leases, and a channel. Its calls are those of
/// the scripts OPEN and PUB.
final class SimulatedEngine {
    struct Meta {
        var head: LogHead
        var replid: UInt64
    }

    enum Refusal: Error { case notMaster, epoch }

    let mutation: Simulation.Mutation
    let mostEntries: Int
    private(set) var replid: UInt64
    private(set) var meta: Meta?
    private(set) var stream: [LogEntry] = []
    /// What each of the last writes found, so that a tail can be lost.
    private var undo: [(meta: Meta?, added: Bool)] = []
    var leases: [String: (boot: UInt64, until: Int64)] = [:]
    var isMaster = true
    var isUp = true
    var frozenUntil: Int64 = 0
    var links: [SimulatedLink] = []

    init(replid: UInt64, mutation: Simulation.Mutation, mostEntries: Int) {
        self.replid = replid
        self.mutation = mutation
        self.mostEntries = mostEntries
    }

    /// A replica of this one, promoted, that had not got the last writes.
    func promoteReplica(lacking writes: Int, replid: UInt64) -> SimulatedEngine {
        let engine = SimulatedEngine(replid: replid, mutation: mutation, mostEntries: mostEntries)
        (engine.meta, engine.stream, engine.undo, engine.leases) = (meta, stream, undo, leases)
        engine.loseTail(writes)
        return engine
    }

    func restart(replid: UInt64) { self.replid = replid }

    func loseTail(_ writes: Int) {
        for _ in 0..<writes {
            guard let last = undo.popLast() else { return }
            meta = last.meta
            if last.added, !stream.isEmpty { stream.removeLast() }
        }
    }

    func flush() {
        meta = nil
        stream = []
        undo = []
        leases = [:]
    }

    private func remember(added: Bool) {
        undo.append((meta, added))
        if undo.count > 60 { undo.removeFirst(20) }
    }

    func open(now: UInt64) throws(Refusal) -> LogHead {
        guard isMaster else { throw .notMaster }
        if let meta, meta.replid == replid || mutation == .noNewEpoch { return meta.head }
        remember(added: false)
        let epoch = mutation == .noNewEpoch ? 1 : max(now, (meta?.head.place.epoch ?? 0) + 1)
        let older = meta.map { [$0.head.place] + $0.head.older } ?? []
        let head = LogHead(
            place: LogPlace(epoch: epoch, offset: -1), tag: 0, older: Array(older.prefix(LogHead.mostOlder)))
        meta = Meta(head: head, replid: replid)
        return head
    }

    func write(epoch: UInt64, tag: UInt64, batch: [UInt8]) throws(Refusal) -> LogEntry {
        guard isMaster else { throw .notMaster }
        guard var meta, meta.head.place.epoch == epoch else { throw .epoch }
        remember(added: true)
        let tag = mutation == .noTags ? 1 : tag
        let place = LogPlace(epoch: epoch, offset: meta.head.place.offset + 1)
        let entry = LogEntry(place: place, previous: meta.head.tag, tag: tag, batch: batch[...])
        (meta.head.place, meta.head.tag) = (place, tag)
        self.meta = meta
        stream.append(entry)
        if stream.count > mostEntries + mostEntries / 4 { stream.removeFirst(stream.count - mostEntries) }
        return entry
    }

    func range(after place: LogPlace, count: Int) -> [LogEntry] {
        var low = 0
        var high = stream.count
        while low < high {
            let middle = (low + high) / 2
            if stream[middle].place <= place { low = middle + 1 } else { high = middle }
        }
        return Array(stream[low...].prefix(count))
    }
}

/// A connection: what goes into it comes out in order, later; what it closed on one side may be lost or not.
final class SimulatedLink {
    let simulation: Simulation
    let engine: SimulatedEngine
    unowned let hub: SimulatedHub
    private var toEngine: Int64 = 0
    private var toHub: Int64 = 0
    var stalledUntil: Int64 = 0
    var isSubscribed = false
    var dropNext = 0
    var closedByHub = false
    private(set) var closedByEngine = false
    /// When the engine last said something here.
    var heardAt: Int64

    init(_ simulation: Simulation, _ engine: SimulatedEngine, _ hub: SimulatedHub) {
        self.simulation = simulation
        self.engine = engine
        self.hub = hub
        heardAt = simulation.now
        engine.links.append(self)
    }

    /// What a hub sends arrives also when the hub has closed the connection since.
    func request<Answer>(_ ask: @escaping (SimulatedEngine) -> Answer, _ take: @escaping (Answer) -> Void) {
        toEngine = max(toEngine, simulation.now + simulation.latency())
        arrive(at: toEngine) { [self] in
            let answer = ask(engine)
            deliver { take(answer) }
        }
    }

    private func arrive(at time: Int64, _ work: @escaping () -> Void) {
        simulation.after(time - simulation.now) { [self] in
            guard !closedByEngine, engine.isUp else { return }
            let wait = max(engine.frozenUntil, stalledUntil)
            if wait > simulation.now { return arrive(at: wait, work) }
            work()
        }
    }

    /// What the engine sends; all of it is lost that the hub has not got when the engine cuts the connection.
    func deliver(_ take: @escaping () -> Void) {
        toHub = max(toHub, simulation.now + simulation.latency())
        come(at: toHub, take)
    }

    private func come(at time: Int64, _ take: @escaping () -> Void) {
        simulation.after(time - simulation.now) { [self] in
            guard !closedByEngine, !closedByHub else { return }
            if stalledUntil > simulation.now { return come(at: stalledUntil, take) }
            hub.perform { [self] in
                guard !closedByHub else { return }
                heardAt = simulation.now
                take()
            }
        }
    }

    /// The engine ends the connection. `isSilent`: its host is gone, and nobody tells the hub.
    func cut(isSilent: Bool = false) {
        guard !closedByEngine else { return }
        closedByEngine = true
        engine.links.removeAll { $0 === self }
        guard !isSilent else { return }
        simulation.after(simulation.latency()) { [self] in hub.perform { [self] in hub.lost(self) } }
    }
}

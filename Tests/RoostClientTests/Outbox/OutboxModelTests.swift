import Foundation
import RoostClient
import TestSupport
import Testing

/// An outbox whose process dies between any two writes, whose sends end in every way, whose storage fails: against a
/// server that keeps one row for each `localID`, and a plain list of what was put in.
@Suite struct OutboxModelTests {
    @Test(arguments: 0..<100) func everyPayloadIsThereOnceAndInOrder(_ seed: Int) throws {
        // Half of the worlds have a storage that only dies; the others have one that fails and goes on, too.
        var world = try OutboxWorld(seed: UInt64(seed), storageFails: seed % 2 == 1)
        for _ in 0..<500 { try world.step() }
        try world.end()
        #expect(world.delivered > 50)
        #expect(world.deaths > 5, "a run without deaths proves nothing about them")
        #expect(world.repeats > 0, "nothing was sent twice, so nothing was lost on the way")
    }
}

/// A server, a network, a disk and a phone, for a seed.
struct OutboxWorld {
    private var random: SeededGenerator
    private let storageFails: Bool
    private let disk = Disk()
    private var storage: DyingStorage
    private var core: OutboxCore
    private var now = ContinuousClock.now
    private let options = OutboxOptions(capacity: 40, concurrentSends: 2)
    private var running: [OutboxQueue.Attempt] = []
    private var count = 0

    /// What the server has, by lane, in the order in which it came.
    private var rows: [String: [UUID]] = [:]
    private var known: Set<UUID> = []
    /// What was put in and not rejected, by lane, in the order in which it is to arrive.
    private var expected: [String: [UUID]] = [:]
    private var lanes: [UUID: String] = [:]
    private var failed: Set<UUID> = []
    /// Rejected while the storage failed: it may have been forgotten that it was.
    private var unsure: Set<UUID> = []
    private var discarded: Set<UUID> = []
    private var reportedSent: Set<UUID> = []
    private(set) var deaths = 0
    private(set) var repeats = 0

    var delivered: Int { known.count }

    init(seed: UInt64, storageFails: Bool) throws {
        random = SeededGenerator(seed: seed)
        self.storageFails = storageFails
        storage = DyingStorage(disk)
        core = OutboxCore(storage: storage, options: options)
        try core.load()
    }

    // MARK: Steps

    mutating func step() throws {
        if random.below(12) == 0 { storage.plan = random.below(2) == 0 ? .dieBefore : .dieAfter }
        if storageFails, random.below(10) == 0 { storage.plan = random.below(2) == 0 ? .failBefore : .failAfter }
        switch random.below(12) {
        case 0...2: try enqueue()
        case 3...5: try send()
        case 6, 7: try answer()
        case 8: try changeArrives()
        case 9: now += .milliseconds(random.below(9_000))
        case 10 where random.below(3) == 0: core.endPauses()
        case 10: try lookAtFailed()
        default: if random.below(10) == 0 { try die() }
        }
        if storage.isDead { try die() }
        try check()
    }

    private mutating func enqueue() throws {
        count += 1
        let isRepeat = random.below(8) == 0
        let localID = (isRepeat ? random.pick(from: sorted(lanes.keys)) : nil) ?? random.id()
        let lane = lanes[localID] ?? random.pick(from: ["a", "b", "c"]) ?? ""
        let isKnown = core.queue[localID] != nil || reportedSent.contains(localID)
        do {
            let admission = try core.enqueue(Data(), localID: localID, lane: lane)
            if isKnown { #expect(admission == .duplicate) }
            if admission == .queued { expect(localID, lane) }
        } catch let error as OutboxError {
            let held = core.queue.all.count
            #expect(held >= options.capacity)
            #expect(error == .full(waiting: held - failedInQueue, failed: failedInQueue))
        } catch is DyingStorage.Failure {
            // Nobody was promised anything; it may be there all the same.
            unsure.insert(localID)
            if storage.isDead, lanes[localID] == nil || discarded.contains(localID) {
                try die()
                if core.queue[localID] != nil { expect(localID, lane) }
            }
        }
    }

    private mutating func expect(_ localID: UUID, _ lane: String) {
        lanes[localID] = lane
        discarded.remove(localID)
        failed.remove(localID)
        if !known.contains(localID) { expected[lane, default: []].append(localID) }
    }

    private mutating func send() throws {
        let attempts = core.startAttempts(at: now)
        running += attempts
        let lanesOfRunning = running.compactMap { lanes[$0.localID] }
        #expect(lanesOfRunning.count == Set(lanesOfRunning).count, "two of one lane at once")
        #expect(running.count <= options.concurrentSends)
    }

    private mutating func answer() throws {
        guard let attempt = random.pick(from: running) else { return }
        running.removeAll { $0 == attempt }
        let isThere = known.contains(attempt.localID)
        switch random.below(5) {
        case 0, 1:
            arrive(attempt.localID)
            finish(attempt.localID)
        case 2:
            arrive(attempt.localID)
            fail(attempt, .retry)
        case 3: fail(attempt, .retry)
        default:
            // A server that has the row does not refuse it; but the app may misread its answer.
            if !isThere, random.below(4) == 0 { arrive(attempt.localID) }
            fail(attempt, .reject("no"))
            try settleRejected(attempt.localID)
        }
    }

    private mutating func arrive(_ localID: UUID) {
        guard known.insert(localID).inserted else {
            repeats += 1
            return
        }
        rows[lanes[localID] ?? "?", default: []].append(localID)
    }

    private mutating func finish(_ localID: UUID) {
        if core.finishPayload(localID) { reportedSent.insert(localID) }
        running.removeAll { $0.localID == localID }
    }

    private mutating func fail(_ attempt: OutboxQueue.Attempt, _ verdict: OutboxVerdict) {
        core.failAttempt(attempt, verdict, reason: "test", at: now, random: Double(random.below(1_000)) / 1_000)
    }

    private mutating func settleRejected(_ localID: UUID) throws {
        if storage.hasFailed { unsure.insert(localID) }
        if storage.isDead { try die() }
        if core.queue[localID]?.entry.failure != nil { setAside(localID) }
    }

    private mutating func setAside(_ localID: UUID) {
        failed.insert(localID)
        let lane = lanes[localID] ?? "?"
        if !known.contains(localID) { expected[lane]?.removeAll { $0 == localID } }
    }

    private mutating func changeArrives() throws {
        let localID = random.below(4) == 0 ? random.id() : random.pick(from: sorted(known))
        if let localID { finish(localID) }
    }

    private mutating func lookAtFailed() throws {
        guard let localID = random.pick(from: sorted(failed.filter { core.queue[$0] != nil })) else { return }
        let retries = random.below(2) == 0
        if !retries { discarded.insert(localID) }
        failed.remove(localID)
        do {
            let wasThere = try retries ? core.retryFailed(localID) : core.discardPayload(localID)
            #expect(wasThere)
        } catch is DyingStorage.Failure {
            if storage.hasFailed { unsure.insert(localID) }
            if storage.isDead { try die() }
        }
        guard let entry = core.queue[localID]?.entry else { return }
        if entry.failure != nil {
            failed.insert(localID)
        } else {
            discarded.remove(localID)
            if !known.contains(localID) { expected[entry.lane, default: []].append(localID) }
        }
    }

    /// The process ends. Requests that are under way may still arrive.
    private mutating func die() throws {
        deaths += 1
        for attempt in running where random.below(2) == 0 { arrive(attempt.localID) }
        running = []
        reportedSent = []
        storage = DyingStorage(disk)
        core = OutboxCore(storage: storage, options: options)
        try core.load()
        for localID in failed where core.queue[localID]?.entry.failure == nil && core.queue[localID] != nil {
            #expect(unsure.contains(localID), "\(localID) was rejected, and the disk has forgotten it")
            failed.remove(localID)
        }
    }

    /// For picking what a seed repeats.
    private func sorted(_ localIDs: some Sequence<UUID>) -> [UUID] { localIDs.sorted { $0.uuidString < $1.uuidString } }

    // MARK: What must hold

    private var failedInQueue: Int { core.queue.all.count { $0.entry.failure != nil } }

    private mutating func check() throws {
        for event in core.takeEvents() {
            if case .sent(let localID) = event { #expect(known.contains(localID), "reported as sent, and not there") }
        }
        for localID in lanes.keys where !known.contains(localID) && !discarded.contains(localID) {
            #expect(core.queue[localID] != nil, "\(localID) is lost")
        }
    }

    /// The network is good and the disk is sound: all that was not rejected arrives.
    mutating func end() throws {
        try die()
        running = []
        for _ in 0..<200 {
            storage.plan = .work
            for attempt in core.startAttempts(at: now) {
                arrive(attempt.localID)
                finish(attempt.localID)
            }
        }
        try check()
        #expect(core.queue.all.allSatisfy { $0.entry.failure != nil })
        #expect(disk.entries.values.allSatisfy { $0.failure != nil }, "the disk has what was sent")
        for (lane, localIDs) in expected {
            let wanted = localIDs.filter { !unsure.contains($0) && !discarded.contains($0) }
            let isWanted = Set(wanted)
            #expect(rows[lane, default: []].filter { isWanted.contains($0) } == wanted, "lane \(lane)")
        }
    }
}

extension SeededGenerator {
    fileprivate mutating func id() -> UUID {
        var bytes = UUID().uuid
        withUnsafeMutableBytes(of: &bytes) { for index in $0.indices { $0[index] = UInt8(truncatingIfNeeded: next()) } }
        return UUID(uuid: bytes)
    }
}

/// The scenarios `idle`, `fanout` and `slow`: sockets that listen to channels, and publishers that speak there.
final class FanoutBehaviour: ScenarioBehaviour {
    var meter: Meter
    private let crowd: Crowd
    private let worker: Int
    private let code: StampCode
    private var publishers: Publishers?
    /// One for each channel of each socket.
    private var windows: ContiguousArray<SequenceWindow>
    private var members: [Bool]
    private var stalled: StalledReaders
    private var start = UInt64.max
    private var ends: [Int] = []
    private var owed = 0

    init(_ plan: LoadPlan, worker: Int) throws {
        self.worker = worker
        crowd = Crowd(plan, worker: worker)
        code = StampCode(run: plan.run)
        meter = Meter(primary: plan.scenario.primaryLatency)
        windows = ContiguousArray(repeating: SequenceWindow(), count: crowd.share.count * crowd.map.perSocket)
        members = [Bool](repeating: false, count: crowd.share.count)
        stalled = StalledReaders(count: max(0, min(crowd.share.count, plan.stalled - crowd.share.first)))
        if plan.publishers > 0 {
            publishers = try Publishers(plan, worker: worker, firstSlot: crowd.share.count, crowd)
        }
    }

    static func slots(_ plan: LoadPlan, worker: Int) -> Int {
        Share(of: worker, plan).count + (plan.publishers > 0 ? Publishers.count(plan, worker: worker) : 0)
    }

    var stalledCount: Int { stalled.count }

    func opening(of slot: Int) throws -> Opening {
        slot < crowd.share.count
            ? try crowd.opening(of: slot)
            : try crowd.opening(publisherOf: Publishers.channels(crowd.plan, worker: worker, slot - crowd.share.count))
    }

    func joined(_ slot: Int, at now: UInt64, _ fleet: Fleet<FanoutBehaviour>) {
        guard slot < members.count else { return }
        members[slot] = true
        meter.recordAlways(.join, from: fleet.sockets[slot].dialled, to: now)
    }

    func ended(_ slot: Int, at now: UInt64, _ fleet: Fleet<FanoutBehaviour>) { stalled.ended(slot, at: now) }

    // MARK: Messages

    func received(
        _ frame: UnsafeRawBufferPointer, on slot: Int, at now: UInt64, _ fleet: Fleet<FanoutBehaviour>
    ) -> Bool {
        guard var at = code.needle.end(in: frame) else { return false }
        // Servers of other protocols put several messages into one frame.
        while true {
            if let stamp = code.read(frame, at: at) { take(stamp, slot, now) }
            guard let next = code.needle.end(in: frame, from: at) else { return true }
            at = next
        }
    }

    @inline(__always)
    private func take(_ stamp: Stamp, _ slot: Int, _ now: UInt64) {
        meter.took()
        guard !stalled.contains(slot), slot < members.count else { return }
        guard stamp.kind == .broadcast,
            let index = crowd.map.index(ofChannel: stamp.stream, onSocket: crowd.share.first + slot)
        else {
            meter.count.wrong += 1
            return
        }
        guard meter.count.count(windows[slot * crowd.map.perSocket + index].take(stamp.number)) else { return }
        meter.record(.broadcast, from: stamp.due, to: now, due: stamp.due)
        meter.record(.sent, from: stamp.sent, to: now, due: stamp.due)
    }

    // MARK: The run

    func start(_ timing: Timing, _ fleet: Fleet<FanoutBehaviour>) throws {
        start = timing.start
        try stalled.begin(fleet, at: timing.measuredFrom)
    }

    var nextDue: UInt64 {
        guard start != .max, let offset = publishers?.nextOffset else { return .max }
        return start + offset
    }

    func act(at now: UInt64, _ fleet: Fleet<FanoutBehaviour>) throws {
        while nextDue <= now, let message = publishers?.next(start: start) {
            try fleet.send(message.frame, on: message.slot)
            meter.sent += 1
        }
    }

    func isFinished(_ fleet: Fleet<FanoutBehaviour>) -> Bool { false }

    func stop(_ fleet: Fleet<FanoutBehaviour>) throws {
        start = .max
        try stalled.goOn(fleet)
    }

    var channelSums: [UInt64] { publishers?.channelSums ?? [] }

    func settle(_ channelSums: [UInt64], _ fleet: Fleet<FanoutBehaviour>) {
        ends = channelSums.map(Int.init)
        forEachOwedWindow { owed += windows[$0].expected(before: $1) }
    }

    func isSettled(_ fleet: Fleet<FanoutBehaviour>) -> Bool {
        meter.count.delivered >= owed && stalled.haveCaughtUp(at: MonotonicClock.now)
    }

    func conclude(_ result: inout WorkerResult, _ fleet: Fleet<FanoutBehaviour>) {
        meter.count.expected = owed
        forEachOwedWindow { meter.count.lost += windows[$0].missing(before: $1) }
        stalled.conclude(&result)
    }

    private func forEachOwedWindow(_ body: (_ window: Int, _ end: Int) -> Void) {
        guard !ends.isEmpty else { return }
        for slot in members.indices where members[slot] && !stalled.contains(slot) {
            for index in 0..<crowd.map.perSocket {
                body(
                    slot * crowd.map.perSocket + index,
                    ends[crowd.map.channel(index, ofSocket: crowd.share.first + slot)])
            }
        }
    }
}

/// The messages of a fan-out: who sends which when. Tick `i` is message `i / channels` of channel `i % channels`.
struct Publishers {
    private let plan: LoadPlan
    private let code: StampCode
    private let schedule: Schedule
    /// What is published, by channel; nil for the channels of another worker.
    private var templates: [MessageTemplate?]
    private var numbers: [Int]
    private var tick = 0
    /// The slot of this worker's first publisher.
    private let firstSlot: Int
    private let worker: Int

    init(_ plan: LoadPlan, worker: Int, firstSlot: Int, _ crowd: Crowd) throws {
        self.plan = plan
        self.worker = worker
        self.firstSlot = firstSlot
        code = StampCode(run: plan.run)
        schedule = Schedule(rate: plan.rate, burst: plan.burst, seconds: plan.warmUp + plan.seconds)
        numbers = [Int](repeating: 0, count: plan.channels)
        templates = []
        for channel in 0..<plan.channels {
            templates.append(Self.publisher(of: channel) % plan.workers == worker ? try crowd.template(channel) : nil)
        }
        skipOthers()
    }

    private static func publisher(of channel: Int) -> Int { channel / LoadPlan.channelsPerPublisher }

    /// How many publishers a worker has.
    static func count(_ plan: LoadPlan, worker: Int) -> Int {
        (plan.publishers - worker + plan.workers - 1) / plan.workers
    }

    /// The channels of this worker's publisher `index`.
    static func channels(_ plan: LoadPlan, worker: Int, _ index: Int) -> Range<Int> {
        let first = (index * plan.workers + worker) * LoadPlan.channelsPerPublisher
        return first..<min(plan.channels, first + LoadPlan.channelsPerPublisher)
    }

    /// When the next message is due, in nanoseconds from the start; nil when all is sent.
    var nextOffset: UInt64? { tick < schedule.total ? schedule.offset(of: tick) : nil }

    /// The next frame, with the slot that sends it.
    mutating func next(start: UInt64) -> (frame: [UInt8], slot: Int)? {
        let channel = tick % plan.channels
        guard tick < schedule.total, let template = templates[channel] else { return nil }
        let stamp = Stamp(
            kind: .broadcast, stream: channel, number: numbers[channel], due: start + schedule.offset(of: tick),
            sent: MonotonicClock.now)
        numbers[channel] += 1
        tick += 1
        skipOthers()
        return (
            template.frame(code.bytes(of: stamp), size: plan.size),
            firstSlot + Self.publisher(of: channel) / plan.workers
        )
    }

    /// How many messages each channel was sent by this worker.
    var channelSums: [UInt64] { numbers.map(UInt64.init) }

    private mutating func skipOthers() {
        while tick < schedule.total, templates[tick % plan.channels] == nil { tick += 1 }
    }
}

/// A socket and when something is to be done with it.
struct TimedSlot: Comparable {
    let due: UInt64
    let slot: Int

    static func < (one: TimedSlot, other: TimedSlot) -> Bool { (one.due, one.slot) < (other.due, other.slot) }
}

/// The first sockets of a worker, where they stop to read for the time of the run.
struct StalledReaders {
    let count: Int
    private var from: UInt64 = 0
    private var resumed: UInt64?
    private var cutAfter: [Double] = []
    private var closedLater = 0

    init(count: Int) { self.count = count }

    @inline(__always)
    func contains(_ slot: Int) -> Bool { slot < count }

    /// - Parameter moment: from which the time is counted until the server cuts them off.
    mutating func begin<Behaviour>(_ fleet: Fleet<Behaviour>, at moment: UInt64) throws {
        from = moment
        for slot in 0..<count { try fleet.stall(slot, true) }
    }

    mutating func ended(_ slot: Int, at now: UInt64) {
        guard contains(slot), from > 0 else { return }
        if resumed == nil { cutAfter.append(Double(now - min(now, from)) / 1e9) } else { closedLater += 1 }
    }

    /// The stalled sockets read again: what has been waiting for them, and whether the server has cut them off.
    mutating func goOn<Behaviour>(_ fleet: Fleet<Behaviour>) throws {
        resumed = MonotonicClock.now
        for slot in 0..<count { try fleet.stall(slot, false) }
    }

    func haveCaughtUp(at now: UInt64) -> Bool { count == 0 || resumed.map { now > $0 + 1_000_000_000 } ?? false }

    func conclude(_ result: inout WorkerResult) {
        guard count > 0 else { return }
        result.sums["stalled_cut", default: 0] += Double(cutAfter.count)
        result.sums["stalled_closed_later", default: 0] += Double(closedLater)
        result.sums["stalled_alive", default: 0] += Double(count - cutAfter.count - closedLater)
        if let last = cutAfter.max() { result.maxima["stalled_cut_after_seconds"] = last }
    }
}

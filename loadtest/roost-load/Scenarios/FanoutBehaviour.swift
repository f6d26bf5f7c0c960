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

    var claims: [UInt64] { publishers?.claims ?? [] }

    func settle(_ claims: [UInt64], _ fleet: Fleet<FanoutBehaviour>) {
        ends = claims.map(Int.init)
        forEachOwedWindow { owed += windows[$0].expected(before: $1) }
    }

    func isSettled(_ fleet: Fleet<FanoutBehaviour>) -> Bool {
        meter.count.delivered >= owed && stalled.haveCaughtUp(at: Clock.now)
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

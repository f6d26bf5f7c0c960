import HeapModule

/// The scenario `presence`: members of channels come, change and go, and everybody has to know who is there.
final class PresenceBehaviour: ScenarioBehaviour {
    var meter: Meter
    private enum State {
        case present, untracked, left
    }
    private let plan: LoadPlan
    private let crowd: Crowd
    private let code: StampCode
    private let schedule: Schedule
    private var states: [State]
    /// How often each has joined its channel, which is its join's ref.
    private var joins: [Int]
    /// What each knows of its channel.
    private var sums: [UInt64]
    private var returns = Heap<TimedSlot>()
    private var start: UInt64 = .max
    private var tick = 0
    private var number = 0
    private var random: SplitMix
    private var wanted: [UInt64] = []

    init(_ plan: LoadPlan, worker: Int) {
        self.plan = plan
        crowd = Crowd(plan, worker: worker)
        code = StampCode(run: plan.run)
        meter = Meter(primary: .presence)
        let count = crowd.share.count
        schedule = Schedule(
            rate: plan.rate * Double(count) / Double(plan.sockets), seconds: plan.warmUp + plan.seconds)
        states = [State](repeating: .left, count: count)
        joins = [Int](repeating: 1, count: count)
        sums = [UInt64](repeating: 0, count: count)
        random = SplitMix(seed: plan.seed &+ UInt64(worker))
    }

    // MARK: What is said

    func opening(of slot: Int) -> Opening { Opening(frames: [join(slot)], answers: 1) }

    func joined(_ slot: Int, at now: UInt64, _ fleet: Fleet<PresenceBehaviour>) throws {
        meter.recordAlways(.join, from: fleet.sockets[slot].dialled, to: now)
        try track(slot, due: now, fleet)
    }

    func ended(_ slot: Int, at now: UInt64, _ fleet: Fleet<PresenceBehaviour>) { states[slot] = .left }

    private func join(_ slot: Int) -> [UInt8] {
        plan.dialect.join(
            topic(slot), ref: String(joins[slot]), config: #""presence":{"key":"\#(key(slot))","enabled":true}"#)
    }

    private func track(_ slot: Int, due: UInt64, _ fleet: Fleet<PresenceBehaviour>) throws {
        let stamp = Stamp(kind: .presence, stream: slot, number: number, due: due, sent: MonotonicClock.now)
        number += 1
        states[slot] = .present
        let payload = #"{"t":"\#(String(decoding: code.bytes(of: stamp), as: UTF8.self))"}"#
        try fleet.send(
            plan.dialect.presence(topic(slot), joinRef: String(joins[slot]), track: payload), on: slot)
        meter.sent += 1
    }

    private func topic(_ slot: Int) -> String { crowd.topic(channel(slot)) }
    private func channel(_ slot: Int) -> Int { crowd.map.channel(0, ofSocket: crowd.share.first + slot) }
    private func key(_ slot: Int) -> String { "u\(crowd.share.first + slot)" }

    // MARK: The run

    func start(_ timing: Timing, _ fleet: Fleet<PresenceBehaviour>) { start = timing.start }

    var nextDue: UInt64 {
        guard start != .max else { return .max }
        let change = tick < schedule.total ? start + schedule.offset(of: tick) : .max
        return min(change, returns.min?.due ?? .max)
    }

    func act(at now: UInt64, _ fleet: Fleet<PresenceBehaviour>) throws {
        while tick < schedule.total, start != .max, start + schedule.offset(of: tick) <= now {
            let slot = Int.random(in: 0..<states.count, using: &random)
            try change(slot, due: start + schedule.offset(of: tick), fleet)
            tick += 1
        }
        while let next = returns.min, next.due <= now {
            returns.removeMin()
            try comeBack(next.slot, due: next.due, fleet)
        }
    }

    /// Somebody tracks something else, is absent for a while, or leaves the channel for a while.
    private func change(_ slot: Int, due: UInt64, _ fleet: Fleet<PresenceBehaviour>) throws {
        guard states[slot] == .present, fleet.sockets[slot].phase == .ready else { return }
        let choice = Double.random(in: 0..<1, using: &random)
        guard choice >= 0.4 else { return try track(slot, due: due, fleet) }
        let ref = String(joins[slot])
        if choice < 0.7 {
            states[slot] = .untracked
            try fleet.send(plan.dialect.presence(topic(slot), joinRef: ref, track: nil), on: slot)
        } else {
            states[slot] = .left
            try fleet.send(plan.dialect.leave(topic(slot), joinRef: ref), on: slot)
        }
        meter.sent += 1
        returns.insert(TimedSlot(due: due + .random(in: 500_000_000...3_000_000_000, using: &random), slot: slot))
    }

    private func comeBack(_ slot: Int, due: UInt64, _ fleet: Fleet<PresenceBehaviour>) throws {
        guard fleet.sockets[slot].phase == .ready else { return }
        if states[slot] == .left {
            joins[slot] += 1
            try fleet.send(join(slot), on: slot)
        }
        try track(slot, due: due, fleet)
    }

    func isFinished(_ fleet: Fleet<PresenceBehaviour>) -> Bool { false }

    func stop(_ fleet: Fleet<PresenceBehaviour>) throws {
        start = .max
        returns = Heap()
    }

    // MARK: What is heard

    private static let diff = Needle("presence_diff")
    private static let state = Needle("presence_state")
    private static let payload = Needle("\"payload\":")
    private static let close = Needle("phx_close")
    private static let leaves = Needle("\"leaves\":")

    func received(
        _ frame: UnsafeRawBufferPointer, on slot: Int, at now: UInt64, _ fleet: Fleet<PresenceBehaviour>
    ) -> Bool {
        if let event = Self.diff.end(in: frame) {
            meter.took()
            sums[slot] &+= PresenceSum.change(ofDiff: frame)
            measure(frame, now)
            return event > 0
        }
        if let event = Self.state.end(in: frame) {
            meter.took()
            // Version 2 has the payload next, version 1 by name, before or behind.
            let start = plan.dialect.version == .arrays ? event : Self.payload.end(in: frame) ?? event
            sums[slot] = PresenceSum.members(frame, at: start)
            return true
        }
        return states[slot] == .left && Self.close.occurs(in: frame)
    }

    /// Measures how soon members are shown who come or change.
    private func measure(_ frame: UnsafeRawBufferPointer, _ now: UInt64) {
        let end = Self.leaves.end(in: frame) ?? frame.count
        var next = code.needle.end(in: frame)
        while let at = next, at < end {
            if let stamp = code.read(frame, at: at) {
                meter.count.delivered += 1
                meter.record(.presence, from: stamp.due, to: now, due: stamp.due)
            }
            next = code.needle.end(in: frame, from: at)
        }
    }

    // MARK: The end

    /// By channel, the sum of this worker's members that are present (see `PresenceSum`).
    var channelSums: [UInt64] {
        var channelSums = [UInt64](repeating: 0, count: plan.channels)
        for slot in states.indices where states[slot] == .present {
            channelSums[channel(slot)] &+= PresenceSum.hash(key(slot).utf8)
        }
        return channelSums
    }

    func settle(_ channelSums: [UInt64], _ fleet: Fleet<PresenceBehaviour>) { wanted = channelSums }

    func isSettled(_ fleet: Fleet<PresenceBehaviour>) -> Bool { mistaken == 0 }

    /// How many sockets know of other members in their channel than there are.
    private var mistaken: Int {
        guard !wanted.isEmpty else { return 0 }
        return states.indices.count { states[$0] != .left && sums[$0] != wanted[channel($0)] }
    }

    func conclude(_ result: inout WorkerResult, _ fleet: Fleet<PresenceBehaviour>) {
        result.sums["wrong_states"] = Double(mistaken)
    }
}

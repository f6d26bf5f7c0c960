import HeapModule
import Wire

/// The scenario `storm`: everybody is cut off at once and comes back.
final class StormBehaviour: ScenarioBehaviour {
    var meter: Meter
    private let crowd: Crowd
    private var start: UInt64 = .max
    /// When each socket lost its connection; 0 while it has it.
    private var cutAt: [UInt64]
    private var returns = Heap<TimedSlot>()
    private var hasBegun = false
    private var back = 0
    private var attempts = 0
    private var last: UInt64 = 0
    private var random: SplitMix

    init(_ plan: LoadPlan, worker: Int) {
        crowd = Crowd(plan, worker: worker)
        meter = Meter(primary: .back)
        cutAt = [UInt64](repeating: 0, count: crowd.share.count)
        random = SplitMix(seed: plan.seed &+ UInt64(worker))
    }

    func opening(of slot: Int) throws -> Opening { try crowd.opening(of: slot) }

    func received(
        _ frame: UnsafeRawBufferPointer, on slot: Int, at now: UInt64, _ fleet: Fleet<StormBehaviour>
    ) -> Bool { false }

    func joined(_ slot: Int, at now: UInt64, _ fleet: Fleet<StormBehaviour>) {
        meter.recordAlways(.join, from: fleet.sockets[slot].dialled, to: now)
        guard cutAt[slot] > 0 else { return }
        meter.recordAlways(.back, from: cutAt[slot], to: now)
        meter.took()
        cutAt[slot] = 0
        back += 1
        last = now
    }

    func ended(_ slot: Int, at now: UInt64, _ fleet: Fleet<StormBehaviour>) {
        guard hasBegun else { return }
        if cutAt[slot] == 0 { cutAt[slot] = now }
        // A server that is away is asked again soon, but not by all in step.
        returns.insert(TimedSlot(due: now + .random(in: 50_000_000...500_000_000, using: &random), slot: slot))
    }

    func start(_ timing: Timing, _ fleet: Fleet<StormBehaviour>) throws {
        start = timing.start
        hasBegun = true
    }

    /// The storm itself, once; then those who were refused.
    var nextDue: UInt64 { min(start, returns.min?.due ?? .max) }

    func act(at now: UInt64, _ fleet: Fleet<StormBehaviour>) throws {
        if now >= start {
            start = .max
            if !crowd.plan.waitsForCut { try cutAll(fleet) }
        }
        while let next = returns.min, next.due <= now {
            returns.removeMin()
            attempts += 1
            fleet.open(next.slot)
        }
    }

    private func cutAll(_ fleet: Fleet<StormBehaviour>) throws {
        let now = MonotonicClock.now
        for slot in cutAt.indices { cutAt[slot] = now }
        for slot in cutAt.indices { try fleet.cut(slot) }
        // They come at once: the ramp, if there is one, is what holds them back.
        returns = Heap()
        for slot in cutAt.indices { fleet.open(slot) }
        attempts += cutAt.count
    }

    func isFinished(_ fleet: Fleet<StormBehaviour>) -> Bool {
        hasBegun && back >= cutAt.count && fleet.readyCount == cutAt.count
    }

    func stop(_ fleet: Fleet<StormBehaviour>) { hasBegun = false }

    func conclude(_ result: inout WorkerResult, _ fleet: Fleet<StormBehaviour>) {
        result.sums["came_back"] = Double(back)
        result.sums["attempts"] = Double(attempts)
        result.sums["away"] = Double(cutAt.count - fleet.readyCount)
        result.maxima["last_back_moment"] = Double(last)
    }
}

/// The channels that the sockets of a crowd join, and how that is said.
struct Crowd {
    let plan: LoadPlan
    let map: ChannelMap
    let share: Share

    init(_ plan: LoadPlan, worker: Int) {
        self.plan = plan
        map = ChannelMap(plan)
        share = Share(of: worker, plan)
    }

    func topic(_ channel: Int) -> String {
        plan.dialect.topic("load:\(Hexadecimal.text(UInt64(plan.run), width: 8)):\(channel)")
    }

    /// What a subscriber sends first.
    func opening(of slot: Int) throws -> Opening {
        let channels = (0..<map.perSocket).map { map.channel($0, ofSocket: share.first + slot) }
        guard let raw = plan.raw else { return joins(channels) }
        var opening = Opening(answers: raw.acknowledgements)
        for channel in channels { opening.frames += try frames(raw.subscribeFrames, channel) }
        return opening
    }

    /// What a publisher sends first that publishes in these channels.
    func opening(publisherOf channels: Range<Int>) throws -> Opening {
        guard let raw = plan.raw else { return joins(Array(channels)) }
        return Opening(
            frames: try frames(raw.greetingFrames, channels.lowerBound), answers: raw.publisherAcknowledgements)
    }

    func template(_ channel: Int) throws -> MessageTemplate {
        guard let raw = plan.raw else {
            // A publisher's channels are joined in order.
            let ref = String(channel % LoadPlan.channelsPerPublisher + 1)
            return plan.dialect.broadcast(topic(channel), joinRef: ref, event: plan.dialect.event)
        }
        return MessageTemplate(
            raw.isBinary ? .binary : .text, try RawProtocol.bytes(raw.prefix, channel: channel),
            try RawProtocol.bytes(raw.suffix, channel: channel))
    }

    private func joins(_ channels: [Int]) -> Opening {
        var opening = Opening(answers: channels.count)
        for (index, channel) in channels.enumerated() {
            opening.frames.append(plan.dialect.join(topic(channel), ref: String(index + 1)))
        }
        return opening
    }

    private func frames(_ texts: [String], _ channel: Int) throws -> [[UInt8]] {
        try texts.map {
            OutgoingFrame.make(
                plan.raw?.isBinary == true ? .binary : .text, try RawProtocol.bytes($0, channel: channel))
        }
    }
}

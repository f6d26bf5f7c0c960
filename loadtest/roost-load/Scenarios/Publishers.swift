/// The messages of a fan-out: who sends which when. Tick `i` is message `i / channels` of channel `i % channels`.
struct Publishers {
    private let plan: LoadPlan
    private let code: StampCode
    private let schedule: Schedule
    /// By channel; nil for those of another worker.
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

    /// From the start, in nanoseconds; nil when all is sent.
    var nextOffset: UInt64? { tick < schedule.total ? schedule.offset(of: tick) : nil }

    /// The next frame, with the slot that sends it.
    mutating func next(start: UInt64) -> (frame: [UInt8], slot: Int)? {
        let channel = tick % plan.channels
        guard tick < schedule.total, let template = templates[channel] else { return nil }
        let stamp = Stamp(
            kind: .broadcast, stream: channel, number: numbers[channel], due: start + schedule.offset(of: tick),
            sent: Clock.now)
        numbers[channel] += 1
        tick += 1
        skipOthers()
        return (
            template.frame(code.bytes(of: stamp), size: plan.size),
            firstSlot + Self.publisher(of: channel) / plan.workers
        )
    }

    /// How many messages each channel was sent by this worker.
    var claims: [UInt64] { numbers.map(UInt64.init) }

    private mutating func skipOthers() {
        while tick < schedule.total, templates[tick % plan.channels] == nil { tick += 1 }
    }
}

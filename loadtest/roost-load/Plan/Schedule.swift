import Wire

/// When what is due: open loop, so that what is late delays nothing that comes after it.
struct Schedule: Sendable {
    /// A second; zero schedules nothing.
    let rate: Double
    let burst: Int
    let total: Int

    init(rate: Double, burst: Int = 1, seconds: Double) {
        self.rate = rate
        self.burst = burst
        total = Int((rate * seconds).rounded())
    }

    /// Nanoseconds from the start.
    func offset(of tick: Int) -> UInt64 { UInt64(Double(tick / burst * burst) * 1e9 / rate) }

    /// How many ticks are due `elapsed` nanoseconds from the start.
    func due(after elapsed: UInt64) -> Int {
        guard rate > 0 else { return 0 }
        return min(total, Int(Double(elapsed) * rate / 1e9) / burst * burst + burst)
    }
}

/// Which row a worker inserts when. Tick `i` is row `i / conversations` of its conversation `i % conversations`.
struct RowSchedule: Sendable {
    /// The conversations of this worker.
    let conversations: Int
    let ticks: Schedule
    private let worker: Int
    private let workers: Int
    private let run: UInt32

    /// - Parameter all: the conversations of all workers.
    init(_ plan: LoadPlan, worker: Int, conversations: Int, of all: Int) {
        self.conversations = conversations
        self.worker = worker
        workers = plan.workers
        run = plan.run
        ticks = Schedule(
            rate: plan.rate * Double(conversations) / Double(max(1, all)), seconds: plan.warmUp + plan.seconds)
    }

    func conversation(of tick: Int) -> Int { tick % conversations }
    func number(of tick: Int) -> Int { tick / conversations }
    func tick(_ number: Int, in conversation: Int) -> Int { number * conversations + conversation }

    /// How many of a conversation's rows are among the first `count` ticks.
    func rows(in conversation: Int, among count: Int) -> Int {
        (count - conversation + conversations - 1) / conversations
    }

    /// What stamps call a conversation: its number among those of all workers.
    func stream(of conversation: Int) -> Int { conversation * workers + worker }
    func conversation(ofStream stream: Int) -> Int? {
        let conversation = stream / workers
        return stream % workers == worker && conversation < conversations ? conversation : nil
    }

    /// The conversation's id in the database: RUN-0000-4000-8000-N.
    func uuid(of conversation: Int) -> String {
        "\(Hexadecimal.text(UInt64(run), width: 8))-0000-4000-8000-"
            + Hexadecimal.text(UInt64(stream(of: conversation)), width: 12)
    }
}

/// Numbers that look random and are the same for the same seed, in any order they are asked for.
struct SplitMix: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        return Self.mixed(state)
    }

    /// The number that belongs to `seed` and some coordinates.
    static func value(_ seed: UInt64, _ first: Int, _ second: Int = 0) -> UInt64 {
        mixed(
            mixed(seed &+ UInt64(bitPattern: Int64(first)) &* 0x9E37_79B9_7F4A_7C15)
                &+ UInt64(bitPattern: Int64(second)))
    }

    /// The number that belongs to `seed` and some coordinates, as a share from 0 to 1.
    static func share(_ seed: UInt64, _ first: Int, _ second: Int = 0) -> Double {
        Double(value(seed, first, second) >> 11) / Double(1 << 53)
    }

    private static func mixed(_ value: UInt64) -> UInt64 {
        var z = value
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }
}

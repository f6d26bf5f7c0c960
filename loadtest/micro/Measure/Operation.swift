/// One thing that is measured.
struct Operation {
    /// Does it so many times.
    typealias Run = (Int) throws -> Void

    /// `group/what/variant`.
    let name: String
    /// Pairs of a change and a subscription that it decides; 0 where it decides none.
    let pairs: Int
    /// How many times a run of 1 does it: some are only done in company.
    let batch: Int
    /// Runs that allocations are counted in: as few as make their mean exact.
    let countedRuns: Int
    /// Builds what it works on; that is not measured.
    let prepare: () throws -> Run

    init(
        _ name: String, pairs: Int = 0, batch: Int = 1, countedRuns: Int = 300, prepare: @escaping () throws -> Run
    ) {
        self.name = name
        self.pairs = pairs
        self.batch = batch
        self.countedRuns = countedRuns
        self.prepare = prepare
    }

    /// A run of something that differs from one time to the next, by a number that only grows.
    static func turns(_ once: @escaping (Int) throws -> Void) -> Run {
        var turn = 0
        return { times in
            for _ in 0..<times {
                turn += 1
                try once(turn)
            }
        }
    }
}

/// What one operation costs.
struct OperationCost {
    let name: String
    /// Blocks of memory asked for, to two decimals: that much is repeatable.
    let allocations: Double
    /// Bytes asked for.
    let bytes: Double
    /// Blocks that were not given back: what an operation adds to the hub's memory.
    let kept: Double
    /// Nil where only allocations were counted.
    let time: Time?

    /// CPU nanoseconds, and the processor's instructions.
    struct Time {
        let median, least: Double
        /// Nil where they cannot be counted.
        let instructions: Double?
        /// Nil where the operation decides no pairs.
        let pairsPerSecond: Double?
    }
}

/// Takes a result where the optimizer cannot see that nobody looks at it, so that the work behind it is done.
@inline(never)
@_optimize(none)
func blackHole<Value: ~Copyable>(_ value: borrowing Value) {}

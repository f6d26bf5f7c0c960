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

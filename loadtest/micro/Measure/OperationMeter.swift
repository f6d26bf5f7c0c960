/// Measures one operation after the other on the calling thread.
struct OperationMeter {
    let isTiming: Bool
    private let rounds = 11
    private let roundNanoseconds: UInt64 = 10_000_000

    func measure(_ operation: Operation) throws -> OperationCost {
        let run = try operation.prepare()
        // Buffers grow to their size, and what is made at first use is made.
        try run(operation.countedRuns)
        let start = AllocationCount.now
        try run(operation.countedRuns)
        let count = AllocationCount.now.since(start)
        let operations = Double(operation.countedRuns * operation.batch)
        func each(_ number: Int) -> Double { (Double(number) / operations * 100).rounded() / 100 }
        return OperationCost(
            name: operation.name, allocations: each(count.calls), bytes: each(count.bytes),
            kept: each(count.calls - count.freed), time: isTiming ? try time(operation, run) : nil)
    }

    private func time(_ operation: Operation, _ run: Operation.Run) throws -> OperationCost.Time {
        var runs = 1
        while try nanoseconds(of: runs, run) < roundNanoseconds { runs *= 2 }
        let times = try (0..<rounds).map { _ in
            Double(try nanoseconds(of: runs, run)) / Double(runs * operation.batch)
        }.sorted()
        let median = times[rounds / 2]
        return OperationCost.Time(
            median: median, least: times[0], instructions: try instructions(operation, run),
            pairsPerSecond: operation.pairs > 0 ? Double(operation.pairs) / median * 1e9 : nil)
    }

    private func instructions(_ operation: Operation, _ run: Operation.Run) throws -> Double? {
        let start = InstructionCount.now
        try run(operation.countedRuns)
        guard let start, let end = InstructionCount.now else { return nil }
        return Double(end - start) / Double(operation.countedRuns * operation.batch)
    }

    private func nanoseconds(of runs: Int, _ run: Operation.Run) throws -> UInt64 {
        let start = ThreadClock.now
        try run(runs)
        return ThreadClock.now - start
    }
}

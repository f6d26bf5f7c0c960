/// Which loops are to hear of a mark, and when.
struct WatermarkAudience {
    private struct Loop {
        /// It was handed changes since it last heard of a mark.
        var isBehind = false
        var heardAt: ContinuousClock.Instant?
    }

    /// How often a loop hears of marks that cover nothing of its own.
    private static let leisure = Duration.seconds(1)
    private var loops: [Loop]

    init(loops count: Int) { loops = Array(repeating: Loop(), count: count) }

    mutating func delivered(to loop: Int) { loops[loop].isBehind = true }

    mutating func loops(toHearOf mark: Int, at now: ContinuousClock.Instant) -> [Int] {
        let listening = loops.indices.filter { index in
            loops[index].isBehind || loops[index].heardAt.map { now - $0 >= Self.leisure } ?? true
        }
        for index in listening { loops[index] = Loop(isBehind: false, heardAt: now) }
        return listening
    }
}

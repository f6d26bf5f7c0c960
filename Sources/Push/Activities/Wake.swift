/// Since when something waits to be told: debounced, with a ceiling. In monotonic milliseconds.
struct Wake: Equatable {
    private var first: Int64
    private var last: Int64
    private(set) var isUrgent: Bool

    init(at time: Int64, isUrgent: Bool) {
        (first, last) = (time, time)
        self.isUrgent = isUrgent
    }

    mutating func note(at time: Int64, isUrgent: Bool) {
        last = max(last, time)
        self.isUrgent = self.isUrgent || isUrgent
    }

    func due(_ rules: ActivityRules) -> Int64 { isUrgent ? first : min(last + rules.quiet, first + rules.ceiling) }
}

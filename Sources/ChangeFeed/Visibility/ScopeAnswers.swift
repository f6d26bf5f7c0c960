/// What policies answered about one value of a table's scope column, by who asked.
///
/// Answers end one by one and not together: asking anew for all members of a busy conversation at one moment would hold up
/// everybody's changes once a second.
final class ScopeAnswers {
    static let lifetime = Duration.seconds(1)

    private struct Answer {
        let isVisible: Bool
        let end: ContinuousClock.Instant
    }

    private var answers: [Int: Answer] = [:]
    private var pruneAt: ContinuousClock.Instant
    /// The moment that answers are looked up for, and given at.
    private var now: ContinuousClock.Instant

    init(at now: ContinuousClock.Instant) {
        self.now = now
        pruneAt = now + Self.lifetime
    }

    /// Moves on to another round of questions. What has ended by then is forgotten, and with it whoever is gone.
    func advance(to now: ContinuousClock.Instant) {
        self.now = now
        guard now >= pruneAt else { return }
        answers = answers.filter { $0.value.end > now }
        pruneAt = now + Self.lifetime
    }

    subscript(_ principal: Principal) -> Bool? {
        get {
            guard let answer = answers[principal.number], answer.end > now else { return nil }
            return answer.isVisible
        }
        set {
            answers[principal.number] = newValue.map { Answer(isVisible: $0, end: now + Self.share(of: principal)) }
        }
    }

    /// Between half of the lifetime and all of it, evenly over the principals (multiplicative hashing, Knuth 6.4).
    private static func share(of principal: Principal) -> Duration {
        let spread = UInt32(truncatingIfNeeded: principal.number) &* 2_654_435_769
        return lifetime / 2 * (1 + Double(spread) / 4_294_967_296)
    }
}

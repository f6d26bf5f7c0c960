/// When one column of `alerts.timed` is looked at for rows that are due, and how far back.
///
/// What falls due is looked for when the next row does, and once a second in any case. Rows that come into sight long after their
/// time, as they were written late or no hub ran, are looked for every half minute, hour by hour as far back as they are worth it. A
/// look that took long, as the one before it did, is followed by a pause ten times as long, so that no table takes more of a database
/// than that.
///
/// Pure: times are monotonic milliseconds that are passed in.
package struct TimedSchedule: Sendable {
    /// Which rows are looked for: those that fell due between so many milliseconds ago.
    package struct Look: Sendable, Equatable {
        package let oldest: Int64
        package let youngest: Int64
        /// Whether it is one for what comes into sight late.
        package let isLate: Bool

        package init(oldest: Int64, youngest: Int64 = 0, isLate: Bool = false) {
            self.oldest = oldest
            self.youngest = youngest
            self.isLate = isLate
        }
    }

    /// Between two looks at what falls due, at the most and at the least.
    package static let period: Int64 = 1000
    private static let shortestPause: Int64 = 20
    /// How far back those look: a row is in sight only when its transaction has committed.
    package static let overlap: Int64 = 10_000
    /// Between two searches for what came into sight late.
    package static let latePeriod: Int64 = 30_000
    /// How much of the time before is searched by one look.
    package static let slice: Int64 = 3_600_000
    private static let longestPause: Int64 = 15_000

    private var nextLook: Int64 = 0
    /// When the last look began that found all that was due; nil before the first.
    private var lookedAt: Int64?
    private var nextLate: Int64 = 0
    /// When the search that is under way began, and how far back from there it has come; nil between searches.
    private var search: (from: Int64, age: Int64)?
    private var failures = 0
    /// When the last row was due that a look found behind which there may be more: what is before it is not read again.
    private var resume: (isLate: Bool, at: Int64)?
    private static let margin: Int64 = 1000
    /// How long the last look of either kind took.
    private var took: (due: Int64, late: Int64) = (0, 0)

    package init() {}

    /// When there is something to look for.
    package var nextAt: Int64 { min(nextLook, nextLate) }

    /// What to look for now; nil where it is not the time.
    ///
    /// - Parameter life: how long after its time a row is worth it.
    package mutating func next(at now: Int64, life: Int64) -> Look? {
        if now >= nextLook {
            let since = lookedAt.map { now - $0 } ?? 0
            return Look(oldest: min(life, since + Self.overlap, age(at: now, isLate: false)))
        }
        guard now >= nextLate else { return nil }
        let (from, age) = search ?? (now, 0)
        guard now - from + age < life else {
            search = nil
            nextLate = now + Self.latePeriod
            return nil
        }
        search = (from, age)
        let youngest = now - from + age
        let oldest = min(life, youngest + Self.slice, self.age(at: now, isLate: true))
        return Look(oldest: max(oldest, youngest), youngest: youngest, isLate: true)
    }

    private func age(at now: Int64, isLate: Bool) -> Int64 {
        guard let resume, resume.isLate == isLate else { return .max }
        return now - resume.at + Self.margin
    }

    /// A look went well.
    ///
    /// - Parameters:
    ///   - began: when.
    ///   - isFull: there may be more of the same.
    ///   - last: when the last row that it found was due.
    ///   - nextDue: when the next row falls due; nil where that is not soon.
    package mutating func looked(
        _ look: Look, began: Int64, isFull: Bool, last: Int64? = nil, nextDue: Int64? = nil, at now: Int64
    ) {
        failures = 0
        if isFull { resume = last.map { (look.isLate, $0) } } else if resume?.isLate == look.isLate { resume = nil }
        // Of a machine that is busy one look may take long: that is no reason for the next to come late.
        let length = min(now - began, look.isLate ? took.late : took.due)
        if look.isLate { took.late = now - began } else { took.due = now - began }
        let pause = isFull ? 0 : max(Self.shortestPause, 10 * length)
        if look.isLate {
            if !isFull, let (from, age) = search { search = (from, age + Self.slice) }
            // A row that came into sight while this was under way is found by the next search.
            nextLate = now + (now > began ? pause : 0)
        } else {
            if !isFull { lookedAt = began }
            nextLook =
                now + (isFull ? 0 : max(pause, min(Self.period, nextDue.map { max(0, $0 - now) } ?? Self.period)))
        }
    }

    /// A look failed, for a reason that may pass. Where it was one for what comes into sight late, what falls due is looked for as
    /// before, and the next hour has its turn.
    package mutating func failed(_ look: Look? = nil, at now: Int64) {
        resume = nil
        let pause = min(Self.longestPause, Self.period << Int64(min(failures, 5)))
        if let look, look.isLate {
            if let (from, age) = search { search = (from, age + Self.slice) }
            nextLate = now + Self.longestPause
            return
        }
        failures += 1
        nextLook = now + pause
        nextLate = max(nextLate, nextLook)
    }
}

/// The times at which one column of `alerts.timed` is searched for rows that are due, and how far back.
///
/// A search for due rows happens when the next row falls due, and once a second in any case. Rows that become visible long after their
/// time, because they were written late or no hub ran, are searched for every half minute, hour by hour as far back as they are worth
/// it. If both this look and the one before took long, a pause ten times as long follows, so that no table takes more of a database
/// than that.
///
/// Pure: times are monotonic milliseconds that are passed in.
package struct TimedSchedule: Sendable {
    /// A range of rows to look for: those that fell due between `oldest` and `youngest` milliseconds ago.
    package struct Look: Sendable, Equatable {
        package let oldest: Int64
        package let youngest: Int64
        /// Whether it looks for rows that become visible late.
        package let isLate: Bool

        package init(oldest: Int64, youngest: Int64 = 0, isLate: Bool = false) {
            self.oldest = oldest
            self.youngest = youngest
            self.isLate = isLate
        }
    }

    /// The longest and the shortest interval between two looks for due rows.
    package static let period: Int64 = 1000
    private static let shortestPause: Int64 = 20
    /// The range of those looks: a row becomes visible only when its transaction has committed.
    package static let overlap: Int64 = 10_000
    /// The interval between two searches for rows that became visible late.
    package static let latePeriod: Int64 = 30_000
    /// The span of time that one look of such a search covers.
    package static let slice: Int64 = 3_600_000
    private static let longestPause: Int64 = 15_000

    private var nextLook: Int64 = 0
    /// The start of the last look that found all due rows; nil before the first.
    private var lookedAt: Int64?
    private var nextLate: Int64 = 0
    /// The start of the search under way, and how far back from there it has come; nil between searches.
    private var search: (from: Int64, age: Int64)?
    private var failures = 0
    /// The due time of the last row found by a look that may have left more: rows before it are not read again.
    private var resume: (isLate: Bool, at: Int64)?
    private static let margin: Int64 = 1000
    /// The duration of the last look of either kind.
    private var took: (due: Int64, late: Int64) = (0, 0)

    package init() {}

    /// The time of the next look.
    package var nextAt: Int64 { min(nextLook, nextLate) }

    /// Returns the next look; nil if it is not time yet.
    ///
    /// - Parameter life: a row is worth an alert for this long after its due time.
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

    /// Notes a successful look.
    ///
    /// - Parameters:
    ///   - began: its start.
    ///   - isFull: whether there may be more of the same.
    ///   - last: the due time of the last row that it found.
    ///   - nextDue: the due time of the next row; nil if that is not soon.
    package mutating func looked(
        _ look: Look, began: Int64, isFull: Bool, last: Int64? = nil, nextDue: Int64? = nil, at now: Int64
    ) {
        failures = 0
        if isFull { resume = last.map { (look.isLate, $0) } } else if resume?.isLate == look.isLate { resume = nil }
        // One slow look may be due to a busy machine, and is no reason to delay the next.
        let length = min(now - began, look.isLate ? took.late : took.due)
        if look.isLate { took.late = now - began } else { took.due = now - began }
        let pause = isFull ? 0 : max(Self.shortestPause, 10 * length)
        if look.isLate {
            if !isFull, let (from, age) = search { search = (from, age + Self.slice) }
            // A row that became visible while this was under way is found by the next search.
            nextLate = now + (now > began ? pause : 0)
        } else {
            if !isFull { lookedAt = began }
            nextLook =
                now + (isFull ? 0 : max(pause, min(Self.period, nextDue.map { max(0, $0 - now) } ?? Self.period)))
        }
    }

    /// Notes a look that failed for a reason that may pass. After a failed look for late rows, the looks for due rows go on as before,
    /// and the next hour has its turn.
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

import Wire

/// A date, with or without a time of day and a zone, in the ISO form that Postgres writes into JSON:
/// `2026-01-31`, `2026-01-31T10:00:00.123456`, `0044-03-15T00:00:00+00:53:28 BC`.
struct ISOMoment {
    /// Days since 2000-01-01, the epoch of Postgres: its last timestamps do not fit 64 bits of microseconds from 1970.
    private let day: Int64
    private let microseconds: Int64
    /// Seconds east of UTC.
    private let offset: Int64
    let hasTime: Bool
    let hasZone: Bool
    /// Four digits, AD.
    let hasPlainYear: Bool

    /// In days since 1970.
    private static let postgresEpoch = 10_957

    /// nil if the text is anything else; a blank may stand for the `T`, seconds may be missing.
    init?(_ text: some Collection<UInt8>) {
        var scan = DigitScan(text[...])
        guard let (year, digits) = scan.number(digits: 4...7), scan.take("-"),
            let (month, _) = scan.number(digits: 2...2), scan.take("-"), let (day, _) = scan.number(digits: 2...2)
        else { return nil }
        var clock: Int64?
        if scan.take("T") || (scan.next(is: " ") && !scan.next(is: " BC") && scan.take(" ")) {
            guard let time = scan.timeOfDay() else { return nil }
            clock = time
        }
        guard let zone = scan.zone() else { return nil }
        let isBC = scan.take(" BC")
        let date = CivilDate(year: Int(isBC ? 1 - year : year), month: Int(month), day: Int(day))
        guard scan.isAtEnd, year > 0, date.exists else { return nil }
        self.day = Int64(date.daysSince1970 - Self.postgresEpoch)
        microseconds = clock ?? 0
        hasTime = clock != nil
        (offset, hasZone) = (zone.offset, zone.isGiven)
        hasPlainYear = digits == 4 && !isBC
    }

    /// Days, or microseconds of UTC; nil if the text has not what the type writes.
    func value(as comparison: Comparison) -> ComparedValue? {
        if comparison == .date { return hasTime || hasZone ? nil : .ordinal(day) }
        guard comparison == .timestamptz ? hasZone : !hasZone else { return nil }
        let (start, overflow) = day.multipliedReportingOverflow(by: 86_400_000_000)
        let (value, carry) = start.addingReportingOverflow(microseconds - offset * 1_000_000)
        return overflow || carry ? nil : .ordinal(value)
    }
}

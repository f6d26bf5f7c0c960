import Wire

/// A date, with or without a time of day and a zone, in the ISO form that Postgres writes into JSON:
/// `2026-01-31`, `2026-01-31T10:00:00.123456`, `0044-03-15T00:00:00+00:53:28 BC`.
struct ISOMoment {
    /// Days since 2000-01-01, Postgres' epoch: its last timestamps do not fit 64 bits of microseconds since 1970.
    private let day: Int64
    private let microseconds: Int64
    /// The zone, in seconds east of UTC.
    private let offset: Int64
    let hasTime: Bool
    let hasZone: Bool
    /// True for a year of four digits, AD.
    let hasPlainYear: Bool

    /// 2000-01-01 in days since 1970.
    private static let postgresEpoch = 10_957

    /// Nil if the text is anything else; a space may stand for the `T`, and seconds are optional.
    init?(_ text: some Collection<UInt8>) {
        var scan = DigitScan(text[...])
        guard let (year, digits) = scan.takeNumber(digits: 4...7), scan.takeMark("-"),
            let (month, _) = scan.takeNumber(digits: 2...2), scan.takeMark("-"),
            let (day, _) = scan.takeNumber(digits: 2...2)
        else { return nil }
        var clock: Int64?
        if scan.takeMark("T") || (scan.next(is: " ") && !scan.next(is: " BC") && scan.takeMark(" ")) {
            guard let time = scan.takeTimeOfDay() else { return nil }
            clock = time
        }
        guard let zone = scan.takeZone() else { return nil }
        let isBC = scan.takeMark(" BC")
        let date = CivilDate(year: Int(isBC ? 1 - year : year), month: Int(month), day: Int(day))
        guard scan.isAtEnd, year > 0, date.exists else { return nil }
        self.day = Int64(date.daysSince1970 - Self.postgresEpoch)
        microseconds = clock ?? 0
        hasTime = clock != nil
        (offset, hasZone) = (zone.offset, zone.isGiven)
        hasPlainYear = digits == 4 && !isBC
    }

    /// Days, or microseconds in UTC; nil if the text is not of the type's form.
    func value(as comparison: Comparison) -> ComparedValue? {
        if comparison == .date { return hasTime || hasZone ? nil : .ordinal(day) }
        guard comparison == .timestamptz ? hasZone : !hasZone else { return nil }
        let (start, overflow) = day.multipliedReportingOverflow(by: 86_400_000_000)
        let (value, carry) = start.addingReportingOverflow(microseconds - offset * 1_000_000)
        return overflow || carry ? nil : .ordinal(value)
    }
}

/// Reads numbers of fixed width and the marks between them.
struct DigitScan<Bytes: Collection<UInt8>> where Bytes.SubSequence == Bytes {
    private var rest: Bytes

    init(_ bytes: Bytes) {
        rest = bytes
    }

    var isAtEnd: Bool { rest.isEmpty }

    func next(is mark: String) -> Bool {
        rest.starts(with: mark.utf8)
    }

    mutating func takeMark(_ mark: String) -> Bool {
        guard next(is: mark) else { return false }
        rest = rest.dropFirst(mark.utf8.count)
        return true
    }

    mutating func takeNumber(digits: ClosedRange<Int>) -> (value: Int64, digits: Int)? {
        var value: Int64 = 0
        var count = 0
        while count < digits.upperBound, let byte = rest.first, byte &- 0x30 < 10 {
            value = value * 10 + Int64(byte &- 0x30)
            count += 1
            rest = rest.dropFirst()
        }
        return count >= digits.lowerBound ? (value, count) : nil
    }

    /// Reads `HH:MM[:SS[.ffffff]]`, in microseconds.
    mutating func takeTimeOfDay() -> Int64? {
        guard let (hour, _) = takeNumber(digits: 2...2), takeMark(":"), let (minute, _) = takeNumber(digits: 2...2)
        else {
            return nil
        }
        var (second, fraction): (Int64, Int64) = (0, 0)
        if takeMark(":") {
            guard let (value, _) = takeNumber(digits: 2...2) else { return nil }
            second = value
            if takeMark(".") {
                guard let (value, digits) = takeNumber(digits: 1...6) else { return nil }
                fraction = (digits..<6).reduce(value) { value, _ in value * 10 }
            }
        }
        guard hour < 24, minute < 60, second < 60 else { return nil }
        return ((hour * 60 + minute) * 60 + second) * 1_000_000 + fraction
    }

    /// Reads `Z` or `±HH[:MM[:SS]]`, in seconds east of UTC; nil if the text is not a zone.
    mutating func takeZone() -> (offset: Int64, isGiven: Bool)? {
        if takeMark("Z") { return (0, true) }
        let isWest = next(is: "-")
        guard takeMark("+") || takeMark("-") else { return (0, false) }
        guard let (hour, _) = takeNumber(digits: 2...2) else { return nil }
        var (minute, second): (Int64, Int64) = (0, 0)
        if takeMark(":") {
            guard let (value, _) = takeNumber(digits: 2...2) else { return nil }
            minute = value
            if takeMark(":") {
                guard let (value, _) = takeNumber(digits: 2...2) else { return nil }
                second = value
            }
        }
        // Postgres accepts no larger offset.
        guard hour < 16, minute < 60, second < 60 else { return nil }
        let offset = (hour * 60 + minute) * 60 + second
        return (isWest ? -offset : offset, true)
    }
}

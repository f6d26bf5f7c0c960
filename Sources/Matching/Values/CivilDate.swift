/// The Gregorian calendar, extended to all years as Postgres does.
enum CivilDate {
    /// Days since 2000-01-01; year 0 is 1 BC. nil if there is no such day. Counted from the epoch of Postgres, because
    /// its last timestamps do not fit 64 bits of microseconds from 1970.
    static func days(year: Int64, month: Int64, day: Int64) -> Int64? {
        guard (1...12).contains(month), day >= 1, day <= length(of: month, isLeap: isLeap(year)) else { return nil }
        let before = year - 1
        let years = before * 365 + floorDivide(before, 4) - floorDivide(before, 100) + floorDivide(before, 400)
        let months = cumulative[Int(month) - 1] + (month > 2 && isLeap(year) ? 1 : 0)
        return years + months + day - 1 - daysTo2000
    }

    private static let cumulative: [Int64] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334]
    private static let daysTo2000: Int64 = 1999 * 365 + 499 - 19 + 4

    private static func isLeap(_ year: Int64) -> Bool {
        year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
    }

    private static func length(of month: Int64, isLeap: Bool) -> Int64 {
        switch month {
        case 2: isLeap ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }

    private static func floorDivide(_ value: Int64, _ divisor: Int64) -> Int64 {
        value >= 0 ? value / divisor : -((-value + divisor - 1) / divisor)
    }
}

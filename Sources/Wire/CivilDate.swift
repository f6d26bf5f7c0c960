/// A day of the Gregorian calendar, extended to all years as in ISO 8601 and Postgres; the year 0 is 1 BC.
package struct CivilDate: Equatable, Sendable {
    package let year: Int
    /// From 1 to 12.
    package let month: Int
    package let day: Int

    package init(year: Int, month: Int, day: Int) {
        (self.year, self.month, self.day) = (year, month, day)
    }

    // Years are counted from March, so that a leap day is the last of its year, in eras of 400 years of 146,097 days.

    package init(daysSince1970 days: Int) {
        let (era, dayOfEra) = (days + 719_468).quotientAndModulus(146_097)
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let months = (5 * dayOfYear + 2) / 153
        month = months < 10 ? months + 3 : months - 9
        year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
        day = dayOfYear - (153 * months + 2) / 5 + 1
    }

    /// A day that does not exist counts as the day that many days after the first of its month.
    package var daysSince1970: Int {
        let (era, yearOfEra) = (month <= 2 ? year - 1 : year).quotientAndModulus(400)
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    }

    /// Whether the calendar has such a day.
    package var exists: Bool {
        (1...12).contains(month) && day >= 1 && (day <= 28 || CivilDate(daysSince1970: daysSince1970) == self)
    }
}

/// A UTC time, split into calendar and clock fields.
package struct CivilTime: Sendable {
    package let date: CivilDate
    package let hour: Int
    package let minute: Int
    package let second: Int
    package let millisecond: Int

    package init(millisecondsSince1970 milliseconds: Int) {
        let (days, rest) = milliseconds.quotientAndModulus(86_400_000)
        date = CivilDate(daysSince1970: days)
        hour = rest / 3_600_000
        minute = rest / 60_000 % 60
        second = rest / 1000 % 60
        millisecond = rest % 1000
    }

    package init(secondsSince1970 seconds: Int) { self.init(millisecondsSince1970: seconds * 1000) }

    /// `2026-01-31`
    package var day: String { "\(Self.digits(date.year, 4))-\(Self.digits(date.month, 2))-\(Self.digits(date.day, 2))" }

    /// `12:00:00`
    package var clock: String { "\(Self.digits(hour, 2)):\(Self.digits(minute, 2)):\(Self.digits(second, 2))" }

    /// ISO 8601 with milliseconds, the form sent to clients: `2026-01-31T12:00:00.123Z`.
    package var text: String { "\(day)T\(clock).\(Self.digits(millisecond, 3))Z" }

    private static func digits(_ number: Int, _ width: Int) -> String {
        let text = String(number)
        return String(repeating: "0", count: max(0, width - text.count)) + text
    }
}

extension Int {
    /// Division that rounds down, so that the modulus is never negative.
    fileprivate func quotientAndModulus(_ divisor: Int) -> (quotient: Int, modulus: Int) {
        let (quotient, rest) = quotientAndRemainder(dividingBy: divisor)
        return rest < 0 ? (quotient - 1, rest + divisor) : (quotient, rest)
    }
}

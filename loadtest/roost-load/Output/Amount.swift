import Glibc
import Wire

/// Figures with their units, as people read them.
enum Amount {
    /// Three significant digits, or all of the whole ones in groups of three.
    static func text(_ value: Double) -> String {
        let size = value.magnitude
        // Beyond it neither an Int nor a reader follows.
        guard value.isFinite, size < 1e15 else { return value.isFinite ? "\(value)" : "–" }
        if size == 0 || size >= 1000 || value == value.rounded() { return count(Int(value.rounded())) }
        let digits = size >= 100 ? 1 : size >= 1 ? 2 : size >= 0.1 ? 3 : size >= 0.01 ? 4 : 6
        return Decimal.text(value, digits: digits)
    }

    static func text(_ value: Double, unit: String) -> String {
        switch unit {
        case "": text(value)
        case "/s": text(value) + unit
        default: text(value) + " " + unit
        }
    }

    static func count(_ number: Int) -> String {
        var grouped: [Character] = []
        for (index, digit) in String(number.magnitude).reversed().enumerated() {
            if index > 0, index % 3 == 0 { grouped.append(",") }
            grouped.append(digit)
        }
        return (number < 0 ? "-" : "") + String(grouped.reversed())
    }

    /// A round number for an axis: "250", "20 k", "1.5 M".
    static func short(_ value: Double) -> String {
        guard value.magnitude < 1e15 else { return text(value) }
        let units = [(1e12, " T"), (1e9, " G"), (1e6, " M"), (1e3, " k")]
        guard let unit = units.first(where: { value.magnitude >= $0.0 }) else { return trimmed(value) }
        return trimmed(value / unit.0) + unit.1
    }

    /// From the kilobytes of `/proc`, which have 1,024 bytes.
    static func memory(kilobytes: Double) -> String {
        let unit = MemoryUnit(fitting: kilobytes)
        return text(kilobytes / unit.kilobytes) + " " + unit.rawValue
    }

    static func percent(_ value: Double) -> String {
        (value.isFinite && value.magnitude < 1e9 ? Decimal.text(value, digits: value >= 100 ? 0 : 1) : text(value))
            + " %"
    }

    /// A span on a clock: "0:05", "12:30", "1:02:03".
    static func clock(seconds: Double) -> String {
        guard seconds.isFinite, seconds.magnitude < 1e9 else { return "–" }
        let whole = Int(seconds.magnitude.rounded())
        let (minutes, rest) = (whole / 60 % 60, whole % 60)
        let head = whole >= 3600 ? "\(whole / 3600):" + padded(minutes) : "\(minutes)"
        return (seconds < 0 && whole > 0 ? "-" : "") + head + ":" + padded(rest)
    }

    /// Up to six decimals, without zeros at their end.
    static func trimmed(_ value: Double) -> String {
        guard value.isFinite, value.magnitude < 1e12 else { return text(value) }
        var digits = Decimal.text(value, digits: 6)
        while digits.last == "0" { digits.removeLast() }
        if digits.last == "." { digits.removeLast() }
        return digits
    }

    private static func padded(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
}

/// Numbers for people, without Foundation.
enum Decimal {
    static func text(_ value: Double, digits: Int) -> String {
        guard value.isFinite else { return "–" }
        var unit = 1
        for _ in 0..<digits { unit *= 10 }
        guard let scaled = Int(exactly: (value.magnitude * Double(unit)).rounded()) else { return "\(value)" }
        let sign = value < 0 && scaled > 0 ? "-" : ""
        guard digits > 0 else { return sign + String(scaled) }
        let fraction = String(scaled % unit)
        return sign + String(scaled / unit) + "." + String(repeating: "0", count: digits - fraction.count) + fraction
    }

    /// A time in the unit that suits it.
    static func duration(nanoseconds: UInt64) -> String {
        let microseconds = Double(nanoseconds) / 1000
        if microseconds < 1000 { return text(microseconds, digits: 0) + " µs" }
        if microseconds < 1_000_000 { return text(microseconds / 1000, digits: 2) + " ms" }
        return text(microseconds / 1_000_000, digits: 2) + " s"
    }
}

/// The unit in which some memory reads best; each has 1,024 of the one before.
enum MemoryUnit: String {
    case kilobytes = "KB"
    case megabytes = "MB"
    case gigabytes = "GB"

    init(fitting kilobytes: Double) {
        self = kilobytes.magnitude < 1024 ? .kilobytes : kilobytes.magnitude < 1024 * 1024 ? .megabytes : .gigabytes
    }

    var kilobytes: Double {
        switch self {
        case .kilobytes: 1
        case .megabytes: 1024
        case .gigabytes: 1024 * 1024
        }
    }
}

/// The points of a latency distribution that are reported.
enum LatencyPercentile: String, CaseIterable {
    case p50
    case p90
    case p99
    case p999 = "p99.9"
    case max

    var share: Double {
        switch self {
        case .p50: 0.5
        case .p90: 0.9
        case .p99: 0.99
        case .p999: 0.999
        case .max: 1
        }
    }
}

extension RunRecord.Latency {
    /// Nanoseconds that `share` of all values do not exceed, rounded up to the next quantile that was kept; nil without values.
    func nanoseconds(at share: Double) -> UInt64? {
        guard count > 0 else { return nil }
        // 0.99 may have been computed as 1 - 0.01.
        return (quantiles.first { $0.share >= share - 1e-12 } ?? quantiles.last)?.nanoseconds
    }

    subscript(percentile: LatencyPercentile) -> UInt64? { nanoseconds(at: percentile.share) }
}

/// A date and time for people, in UTC: reports travel.
enum DateAndTime {
    static func text(secondsSince1970 seconds: Double) -> String {
        // Year 0 to 9999.
        guard seconds.isFinite, (-62_167_219_200..<253_402_300_800).contains(seconds) else { return "–" }
        let time = CivilTime(secondsSince1970: Int(seconds))
        return "\(time.day) \(time.clock) UTC"
    }
}

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

import Glibc

/// A date and time for people, in UTC: reports travel.
enum Moment {
    static func text(secondsSince1970 seconds: Double) -> String {
        // Year 0 to 9999.
        guard seconds.isFinite, (-62_167_219_200..<253_402_300_800).contains(seconds) else { return "–" }
        var time = time_t(seconds)
        var parts = tm()
        guard gmtime_r(&time, &parts) != nil else { return "–" }
        return [
            "\(Int(parts.tm_year) + 1900)-", padded(parts.tm_mon + 1), "-", padded(parts.tm_mday), " ",
            padded(parts.tm_hour), ":", padded(parts.tm_min), ":", padded(parts.tm_sec), " UTC",
        ].joined()
    }

    private static func padded(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }
}

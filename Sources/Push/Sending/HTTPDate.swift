import Wire

/// The header `date` (RFC 9110, section 5.6.7): `Sun, 06 Nov 1994 08:49:37 GMT`.
enum HTTPDate {
    private static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]

    /// Returns milliseconds since 1970; nil for any other format: the obsolete ones are not sent over HTTP/2.
    static func milliseconds(_ text: String) -> Int64? {
        let parts = text.split(separator: " ")
        guard parts.count == 6, parts[5] == "GMT", let day = Int(parts[1]), let year = Int(parts[3]),
            let month = months.firstIndex(of: String(parts[2])), (1...31).contains(day), (1970...9999).contains(year)
        else { return nil }
        let time = parts[4].split(separator: ":").compactMap { Int($0) }
        guard time.count == 3, (0..<24).contains(time[0]), (0..<60).contains(time[1]), (0...60).contains(time[2]) else {
            return nil
        }
        let date = CivilDate(year: year, month: month + 1, day: day)
        return 1000 * Int64(date.daysSince1970 * 86_400 + time[0] * 3600 + time[1] * 60 + time[2])
    }
}

/// The header `retry-after` (RFC 9110, section 10.2.3) in seconds, as push services write it.
enum RetryAfter {
    /// Returns nil for a date, which none of them sends.
    static func milliseconds(_ text: String) -> Int64? {
        guard let seconds = Int64(text), (0...86_400).contains(seconds) else { return nil }
        return seconds * 1000
    }
}

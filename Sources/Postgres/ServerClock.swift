import Glibc

/// Compares this machine's clock with Postgres': tokens end by the one, rows and messages are dated by the other.
package enum ServerClock {
    /// Seconds, from where on a difference is worth a word.
    private static let tolerance = 1.0

    /// - Returns: that the clocks differ, and what to do about it; nil where they agree, or Postgres does not tell its time.
    package static func complaint(
        about connection: PostgresConnection, now: () -> Double = ServerClock.now
    ) throws -> String? {
        let before = now()
        let text = try connection.query("select extract(epoch from clock_timestamp())::float8").text(0, 0) ?? ""
        let after = now()
        guard let theirs = Double(text) else { return nil }
        // Anything between the question and the answer is the same time.
        let skew = max(0, before - theirs, theirs - after)
        guard skew > tolerance else { return nil }
        let tenths = Int((skew * 10).rounded())
        return "The clocks here and at Postgres differ by \(tenths / 10).\(tenths % 10) s; run NTP on both."
    }

    /// Seconds since 1970.
    package static func now() -> Double {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }
}

/// The cursor that a live reader returns, so that a cache between it and the hub never answers the same request twice
/// (Durable Streams, caching and collapsing).
package enum CacheCursor {
    /// 2024-10-09 in seconds since 1970, from which intervals are counted.
    private static let epoch: Int64 = 1_728_432_000
    private static let interval: Int64 = 20
    /// The most seconds by which a cursor that is already current is advanced.
    private static let jitter: Int64 = 3600

    /// - Parameters:
    ///   - unix: the present time, in milliseconds since 1970.
    ///   - asked: the client's cursor, if any.
    ///   - random: any number.
    package static func nextCursor(at unix: Int64, after asked: String?, random: UInt64) -> String {
        let present = presentInterval(at: unix)
        guard let asked = asked.flatMap({ Int64($0) }), asked >= present, asked < Int64.max - jitter else {
            return String(present)
        }
        let seconds = 1 + Int64(random % UInt64(jitter))
        return String(asked + max(1, seconds / interval))
    }

    /// The client's cursor if it is valid, that is, not older than the present.
    package static func validCursor(_ asked: String?, at unix: Int64) -> String? {
        asked.flatMap { Int64($0) }.flatMap { $0 >= presentInterval(at: unix) ? asked : nil }
    }

    private static func presentInterval(at unix: Int64) -> Int64 { max(0, (unix / 1000 - epoch) / interval) }
}

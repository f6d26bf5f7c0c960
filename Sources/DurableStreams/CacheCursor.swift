/// The number that a live reader brings back, so that a cache between it and the hub never answers it twice the same (Durable
/// Streams, caching and collapsing).
package enum CacheCursor {
    /// Seconds since 1970 of 2024-10-09, from which intervals are counted.
    private static let epoch: Int64 = 1_728_432_000
    private static let interval: Int64 = 20
    /// By how many seconds a cursor that is as young as the present is moved on, at most.
    private static let jitter: Int64 = 3600

    /// - Parameters:
    ///   - unix: now, in milliseconds since 1970.
    ///   - asked: what the client brought, if it brought one.
    ///   - random: any number.
    package static func next(at unix: Int64, after asked: String?, random: UInt64) -> String {
        let present = present(at: unix)
        guard let asked = asked.flatMap({ Int64($0) }), asked >= present, asked < Int64.max - jitter else {
            return String(present)
        }
        let seconds = 1 + Int64(random % UInt64(jitter))
        return String(asked + max(1, seconds / interval))
    }

    /// What the client brought, where it counts: it is no older than the present.
    package static func ahead(_ asked: String?, at unix: Int64) -> String? {
        asked.flatMap { Int64($0) }.flatMap { $0 >= present(at: unix) ? asked : nil }
    }

    private static func present(at unix: Int64) -> Int64 { max(0, (unix / 1000 - epoch) / interval) }
}

/// How many sockets each user has, over all loops. The hub asks; it shares nothing with the other hubs itself.
package protocol UserLedger: Sendable {
    /// Whether users are limited now; whom nobody limits nobody counts.
    var countsUsers: Bool { get }
    /// Counts one more socket of a user; false if that would be too many, and then it is not counted.
    func enter(_ user: String) -> Bool
    /// A socket that was counted is gone.
    func leave(_ user: String)
}

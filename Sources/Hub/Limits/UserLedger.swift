/// How many sockets each user has, over all loops. The hub asks; it shares nothing with the other hubs itself.
package protocol UserLedger: Sendable {
    /// Counts one more socket of a user; false if that would be too many, and then it is not counted.
    func enter(_ user: String) -> Bool
    /// A socket that was counted is gone.
    func leave(_ user: String)
}

/// Who decides about private channels, as the loops see it.
package protocol ChannelAuthority: Sendable {
    /// Answers once, from any thread and possibly before it returns; called on a loop's thread, so it must not wait. What
    /// cannot be decided soon is answered `unavailable`.
    func decide(_ question: AuthorizationQuestion, answer: @escaping @Sendable (AuthorizationOutcome) -> Void)
}

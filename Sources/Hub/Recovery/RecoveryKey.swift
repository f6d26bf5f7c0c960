/// What two joins have in common if one may take over from the other: the user and the sign-in, the role, the topic and
/// what was asked for.
///
/// Kept as 128 bits of hash, because there is one for each membership. Two keys that collide by chance cost a repeated
/// change and nothing else: what a member is brought is judged by its own claims and its own parameters.
package struct RecoveryKey: Hashable, Sendable {
    private let high: Int
    private let low: Int
    /// Without a user, all who ask for the same look alike.
    let hasSubject: Bool
    /// Only tabs of one browser, or the like, share such a key; without a session, all devices of a user do.
    let namesDevice: Bool

    init(claims: Claims, channel: ChannelKey, subscription: ChangeSubscription) {
        let session = claims.session
        func digest(_ seed: UInt8) -> Int {
            var hasher = Hasher()
            hasher.combine(seed)
            hasher.combine(claims.subject)
            hasher.combine(session)
            hasher.combine(subscription.role)
            hasher.combine(channel)
            hasher.combine(subscription.isLegacy)
            hasher.combine(subscription.bindings)
            return hasher.finalize()
        }
        high = digest(0)
        low = digest(1)
        hasSubject = claims.subject != nil
        namesDevice = hasSubject && session != nil
    }
}

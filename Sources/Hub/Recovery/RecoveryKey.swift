/// What two joins have in common if one may take over from the other: the user and the sign-in, the role, the topic and
/// what was asked for.
///
/// Kept as 128 bits of a digest, because there is one for each membership. It is the same in every process, so that the
/// next one knows whom the last one served; and whoever can choose topics cannot make it somebody else's.
package struct RecoveryKey: Hashable, Sendable {
    package let high: UInt64
    package let low: UInt64
    /// Without a user, all who ask for the same look alike.
    let hasSubject: Bool

    init(claims: Claims, channel: ChannelKey, subscription: ChangeSubscription) {
        let session = claims.session
        var text: [UInt8] = []
        // The length in front of each keeps ("ab", "c") and ("a", "bc") apart.
        func add(_ field: some Collection<UInt8>) {
            text += "\(field.count):".utf8
            text += field
        }
        for name in [claims.subject, session] {
            text.append(name == nil ? 0 : 1)
            add(Array((name ?? "").utf8))
        }
        add(Array(subscription.role.utf8))
        add(Array(channel.topic.utf8))
        text += [channel.isPrivate ? 1 : 0, subscription.isLegacy ? 1 : 0]
        for binding in subscription.bindings { add(binding.identity) }
        let words = SHA256.digest(of: text).map(UInt64.init)
        high = words[0] << 32 | words[1]
        low = words[2] << 32 | words[3]
        hasSubject = claims.subject != nil
    }

    /// As it was written down.
    package init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
        hasSubject = false
    }

    package static func == (one: RecoveryKey, other: RecoveryKey) -> Bool {
        one.high == other.high && one.low == other.low
    }

    package func hash(into hasher: inout Hasher) { hasher.combine(high) }
}

/// What two joins of one channel have in common if one may take over from the other: the user, the role, and the presence
/// key that the client gave.
///
/// Kept as 128 bits of hash. Two keys that collide by chance cost a repeated message and nothing else: whoever is in a
/// channel may read all of it.
struct HistoryKey: Hashable, Sendable {
    private let high: Int
    private let low: Int
    /// Without a user, all who ask for the same look alike.
    let hasSubject: Bool

    init(_ claims: Claims, presenceKey: String?) {
        func digest(_ seed: UInt8) -> Int {
            var hasher = Hasher()
            hasher.combine(seed)
            hasher.combine(claims.subject)
            hasher.combine(claims.role)
            hasher.combine(presenceKey)
            return hasher.finalize()
        }
        high = digest(0)
        low = digest(1)
        hasSubject = claims.subject != nil
    }
}

/// A membership with history, from the moment it has its seat.
final class HistorySession: Sendable {
    let key: HistoryKey
    let member: MemberID
    /// See `LiveSession.joinNumber`.
    let joinNumber: Int
    let lifeline: Lifeline
    /// Where it would have to start again while nothing is proven.
    let start: Int
    /// Up to where it was brought before it took its seat.
    let seated: Int
    /// The first proof that is about what it was sent since it joined.
    let firstProof: Int

    init(
        key: HistoryKey, member: MemberID, joinNumber: Int, lifeline: Lifeline, start: Int, seated: Int,
        firstProof: Int
    ) {
        self.key = key
        self.member = member
        self.joinNumber = joinNumber
        self.lifeline = lifeline
        self.start = start
        self.seated = seated
        self.firstProof = firstProof
    }

    /// What it has certainly received, given how far its loop was when.
    func proven(_ reader: HistoryReader?) -> Int {
        let proof = lifeline.proof
        guard proof.serial >= firstProof else { return start }
        return max(seated, reader?.position(before: proof.at) ?? 0)
    }
}

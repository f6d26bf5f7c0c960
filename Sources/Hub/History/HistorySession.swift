/// What two joins of one channel have in common if one may take over from the other: the user and the sign-in, the role, and
/// the presence key that the client gave.
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
            hasher.combine(claims.session)
            hasher.combine(claims.role)
            hasher.combine(presenceKey)
            return hasher.finalize()
        }
        high = digest(0)
        low = digest(1)
        hasSubject = claims.subject != nil
    }
}

/// A membership with history, from its join on.
///
/// **Thread**: the unsafe properties are read and written under the history book's lock, which is what makes them safe.
final class HistorySession: RecoverableSession, Sendable {
    typealias Position = HistoryPosition

    let key: HistoryKey
    let member: MemberID
    let trace: ClientTrace
    /// Where it would have to start again while nothing is proven.
    nonisolated(unsafe) private var start: Int
    /// Up to where it was brought before it took its seat.
    nonisolated(unsafe) private var seated: Int
    /// The first proof that is about what it was sent since it joined; none before its join is answered.
    nonisolated(unsafe) private var firstProof = Int.max
    nonisolated(unsafe) private var isAlone = true

    init(key: HistoryKey, member: MemberID, trace: ClientTrace, at position: Int) {
        self.key = key
        self.member = member
        self.trace = trace
        start = position
        seated = position
    }

    /// Its join is answered: it is brought what comes behind `start`, and from `seated` on hears what comes live.
    func settles(at start: Int, seated: Int, firstProof: Int) {
        self.start = start
        self.seated = seated
        self.firstProof = firstProof
        trace.isSettled = true
    }

    /// What it has certainly received, given how far its loop was when.
    func proven(_ reader: HistoryReader?) -> HistoryPosition {
        let proof = trace.lifeline.proof
        let position =
            proof.serial >= firstProof ? max(seated, reader?.position(before: proof.at) ?? 0) : start
        return HistoryPosition(position: position, member: isAlone ? member : nil)
    }

    func mayStandForAnother() { isAlone = false }

    /// The same member's, whose token is one of somebody else from here on.
    func renewed(_ key: HistoryKey, _ trace: ClientTrace) -> HistorySession {
        let session = HistorySession(
            key: key, member: member, trace: trace, at: start)
        if self.trace.isSettled { session.settles(at: start, seated: seated, firstProof: firstProof) }
        session.isAlone = isAlone
        return session
    }
}

/// How far a member with history certainly is.
struct HistoryPosition: SessionPosition {
    let position: Int
    /// Who stands there, where it can be nobody else.
    let member: MemberID?

    var forAnybody: HistoryPosition { HistoryPosition(position: position, member: nil) }

    func isEarlier(than other: HistoryPosition) -> Bool { position < other.position }
}

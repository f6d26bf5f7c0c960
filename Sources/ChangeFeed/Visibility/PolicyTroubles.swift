import Hub
import Matching
import Wire

/// The users for whom policies fail or wait for a lock, so that they can be told, and told again when it is over.
///
/// - A lock is reported once it has lasted as long as changes wait (`PostponedChanges`); a lasting error at once, any other
///   after `patience`.
/// - An error about values may be due to one row. It is reported once, and its end is not: the next row is shown or not.
/// - The end of a trouble shows in the next question, so with the next change.
/// - Pure; time is passed in.
struct PolicyTroubles {
    typealias Instant = ContinuousClock.Instant

    private enum Kind { case lock, failure }

    private struct Key: Hashable {
        let table: UInt32
        let role: Name
        let claims: Claims
        let kind: Kind
    }

    private struct Trouble {
        let since: Instant
        var last: Instant
        /// The notice that its users were sent.
        var notice: PolicyEnding?
        var isOfData = false
        /// True if tables or policies have changed since, so that it may be over.
        var mayBeOver = false
    }

    private var troubles: [Key: Trouble] = [:]

    /// Time in which an error may pass by itself before it is reported.
    static let patience = Duration.seconds(3)
    /// A trouble that recurs after this time without a question counts as a new one.
    private static let lockMemory = Duration.seconds(30)
    private static let failureMemory = PostponedChanges.resignation
    private static let most = 10_000

    /// Tables, policies or privileges have changed: new members are not told of earlier troubles.
    mutating func catalogChanged() {
        for key in troubles.keys { troubles[key]?.mayBeOver = true }
    }

    /// Records an answer.
    ///
    /// - Returns: the notices to send.
    mutating func recordAnswer(_ question: VisibilityQuestion, _ answer: PolicyAnswer, at now: Instant)
        -> [PolicyEnding]
    {
        if answer.locked.isEmpty, answer.failures.isEmpty, troubles.isEmpty { return [] }
        var notices: [PolicyEnding] = []
        for (place, subject) in question.subjects.enumerated() {
            let claims = subject.principal.claims
            func key(_ kind: Kind) -> Key {
                Key(table: question.table.oid, role: question.role, claims: claims, kind: kind)
            }
            if answer.locked.contains(place) {
                notices += extendTrouble(
                    key(.lock), PolicyEnding(question, claims, .isLocked), after: PostponedChanges.patience, at: now)
            } else if troubles.removeValue(forKey: key(.lock))?.notice != nil {
                notices.append(PolicyEnding(question, claims, .wasLocked))
            }
            if let failure = answer.failures[place] {
                notices += extendTrouble(
                    key(.failure), PolicyEnding(question, claims, .fails(failure)),
                    after: failure.isLasting ? .zero : Self.patience, isOfData: failure.isOfData, at: now)
            } else if !answer.failed.contains(place), let known = troubles[key(.failure)], !known.isOfData {
                troubles[key(.failure)] = nil
                if known.notice != nil { notices.append(PolicyEnding(question, claims, .failed)) }
            }
        }
        return notices
    }

    private mutating func extendTrouble(
        _ key: Key, _ notice: PolicyEnding, after patience: Duration, isOfData: Bool = false, at now: Instant
    ) -> [PolicyEnding] {
        let memory = key.kind == .lock ? Self.lockMemory : Self.failureMemory
        var trouble = troubles[key].flatMap { $0.last + memory > now ? $0 : nil } ?? Trouble(since: now, last: now)
        trouble.last = now
        trouble.isOfData = isOfData
        trouble.mayBeOver = false
        let isNews = trouble.notice == nil && now - trouble.since >= patience
        if isNews { trouble.notice = notice }
        if troubles[key] == nil, troubles.count >= Self.most { troubles.removeAll() }
        troubles[key] = trouble
        return isNews ? [notice] : []
    }

    /// The notices that users with the same claims were sent, for a member that joins later.
    func failures(for claims: Claims, as role: Name, at now: Instant) -> [(PolicyEnding, left: Duration)] {
        if troubles.isEmpty { return [] }
        return troubles.compactMap { key, trouble in
            guard key.kind == .failure, key.role == role, key.claims == claims, !trouble.isOfData,
                !trouble.mayBeOver,
                trouble.last + Self.failureMemory > now
            else { return nil }
            return trouble.notice.map { ($0, $0.reason.duration) }
        }
    }
}

/// A user who is shown nothing of a table for a while, or is shown its changes again.
struct PolicyEnding: Hashable {
    enum Reason: Hashable {
        /// The policies end the session that evaluates them.
        case endsSession
        /// The policies wait for a lock.
        case isLocked
        case wasLocked
        /// The policies meet an error.
        case fails(PolicyFailure)
        /// The policies met an error, and work again.
        case failed

        /// Time for which new members are told, too.
        var duration: Duration { self == .endsSession ? PolicyTrials.bar : PostponedChanges.patience }
    }

    let table: UInt32
    let name: String
    let role: Name
    let claims: Claims
    let reason: Reason

    init(_ question: VisibilityQuestion, _ claims: Claims, _ reason: Reason) {
        table = question.table.oid
        name = "\(question.table.schema).\(question.table.name)"
        role = question.role
        self.claims = claims
        self.reason = reason
    }

    /// Errors begin with the code that Supabase's server has for failing policies (its list of error codes, 2026). The
    /// status is that of a notice rather than an error, which would end the channel in some clients.
    var complaint: SubscriptionComplaint {
        let sentence =
            switch reason {
            case .endsSession:
                "Changes of \(name) are not shown to you for up to \(PolicyTrials.bar.components.seconds / 60) minutes, because "
                    + "its policies end the session of Postgres that asks them what you may see; changes are missing since. "
                    + "Load your data again."
            case .isLocked:
                "Changes of \(name) are not shown to you for now, because a table that its policies read is locked; changes are "
                    + "missing since. Load your data again."
            case .wasLocked:
                "Changes of \(name) are shown to you again; some are missing, because a table that its policies read was "
                    + "locked. Load your data again."
            case .fails(let failure) where failure.isOfData:
                "RlsPolicyError: A policy of \(name) fails on a row for you (\(failure.reason)), so that row is not shown to you. "
                    + "Select from it as this user to see why."
            case .fails(let failure):
                "RlsPolicyError: The policies of \(name) fail for you (\(failure.reason)), so its changes are not shown to you. "
                    + "Select from it as this user to see why; you will be told when they work."
            case .failed:
                "Changes of \(name) are shown to you again; some are missing, because its policies failed. Load your data again."
            }
        return SubscriptionComplaint(sentence, isError: false)
    }

    /// The event for the members of a group that it concerns.
    func event(in group: ChangeGroupID, for time: Duration) -> FeedEvent {
        .complaint(complaint, group, claims, milliseconds: Int64(time / .milliseconds(1)))
    }
}

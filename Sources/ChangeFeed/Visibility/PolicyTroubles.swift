import Hub
import Matching
import Wire

/// For whom policies fail, or wait for a lock, so that those concerned are told, and told again when it is over.
///
/// - A lock is told of once it has lasted for as long as changes wait (`PostponedChanges`); an error that does not pass by itself at
///   once, another one after `patience`.
/// - An error about values may lie in one row. It is told once, and that it is over is not: the next row is shown or not.
/// - That it is over shows in the next question, so with the next change.
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
        /// What its people were told.
        var notice: PolicyEnding?
        var isOfData = false
        /// Tables or policies have changed since, so it may be over.
        var mayBeOver = false
    }

    private var troubles: [Key: Trouble] = [:]

    /// How long an error may pass by itself before anybody is told.
    static let patience = Duration.seconds(3)
    /// A trouble that nobody asked about for so long is another one.
    private static let lockMemory = Duration.seconds(30)
    private static let failureMemory = PostponedChanges.resignation
    private static let most = 10_000

    /// Tables, policies or privileges are others now: whoever comes is told nothing of before.
    mutating func catalogChanged() {
        for key in troubles.keys { troubles[key]?.mayBeOver = true }
    }

    /// Takes note of an answer.
    ///
    /// - Returns: who is to be told what.
    mutating func follow(_ question: VisibilityQuestion, _ answer: PolicyAnswer, at now: Instant) -> [PolicyEnding] {
        if answer.locked.isEmpty, answer.failures.isEmpty, troubles.isEmpty { return [] }
        var notices: [PolicyEnding] = []
        for (place, subject) in question.subjects.enumerated() {
            let claims = subject.principal.claims
            func key(_ kind: Kind) -> Key {
                Key(table: question.table.oid, role: question.role, claims: claims, kind: kind)
            }
            if answer.locked.contains(place) {
                notices += stays(
                    key(.lock), PolicyEnding(question, claims, .isLocked), after: PostponedChanges.patience, at: now)
            } else if troubles.removeValue(forKey: key(.lock))?.notice != nil {
                notices.append(PolicyEnding(question, claims, .wasLocked))
            }
            if let failure = answer.failures[place] {
                notices += stays(
                    key(.failure), PolicyEnding(question, claims, .fails(failure)),
                    after: failure.isLasting ? .zero : Self.patience, isOfData: failure.isOfData, at: now)
            } else if !answer.failed.contains(place), let known = troubles[key(.failure)], !known.isOfData {
                troubles[key(.failure)] = nil
                if known.notice != nil { notices.append(PolicyEnding(question, claims, .failed)) }
            }
        }
        return notices
    }

    private mutating func stays(
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

    /// What others with the same claims were told, for whoever comes.
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

/// Somebody who is shown nothing of a table for a while, or was not.
struct PolicyEnding: Hashable {
    enum Reason: Hashable {
        /// Its policies end the session that asks them.
        case endsSession
        /// Its policies wait for a lock.
        case isLocked
        case wasLocked
        /// Its policies meet an error.
        case fails(PolicyFailure)
        /// They did, and work.
        case failed

        /// How long whoever comes is told, too.
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

    /// Errors begin with the code that Supabase's server has for policies that fail (its list of error codes, 2026). The status is that
    /// of a word and not of an error, which would end the channel in some clients.
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

    /// What tells those of a group whom it concerns.
    func event(in group: ChangeGroupID, for time: Duration) -> FeedEvent {
        .complaint(complaint, group, claims, milliseconds: Int64(time / .milliseconds(1)))
    }
}

import Hub
import Wire

/// The record of what evaluating policies has cost: a user for whom a policy ends the Postgres session that evaluates it
/// must not end every session for ever.
///
/// Questions that ended the session twice are asked apart, and if one ends it by itself, each of its subjects alone; a
/// subject that does so twice is not asked about for a while. The record outlives sessions, because a crashed server takes
/// some time to come back.
///
/// Nor must a lock that a policy waits for hold up all users: subjects that waited for one are asked about again after a
/// pause, and then without the others and only for a moment, until there is an answer. Pure; time is passed in.
package struct PolicyTrials {
    package typealias Instant = ContinuousClock.Instant

    private struct Policies: Hashable {
        let table: UInt32
        let command: PolicyQuestion.Command
        let role: Name

        init(_ question: PolicyQuestion) {
            table = question.table.oid
            command = question.command
            role = question.role
        }
    }

    private struct Asker: Hashable {
        let policies: Policies
        let claims: Claims
        let topic: Name?
    }

    /// Consecutive sessions that ended while questions were asked together.
    private var losses = 0
    /// Questions that ended the session when they were asked by themselves.
    private var suspects: [Policies: Instant] = [:]
    /// Subjects that have ended a session alone once, and those that did so twice.
    private var struck: Set<Asker> = []
    private var barred: [Asker: Instant] = [:]
    /// When to ask again after a lock: questions without any answer, and subjects that waited for it alone.
    private var lockedPolicies: [Policies: Instant] = [:]
    private var lockedAskers: [Asker: Instant] = [:]

    /// A session may end for any reason; twice in a row for the same questions is no coincidence.
    private static let mostLosses = 2
    /// Time that a subject is not asked about: the same that `PostponedChanges` resigns itself to failing policies.
    package static let bar = PostponedChanges.resignation
    /// Limit of remembered subjects: each has cost a session, or a wait.
    private static let mostBarred = 10_000
    /// Pause before subjects that wait for a lock are asked about again: a fraction of the patience of `PostponedChanges`.
    static let lockPause = Duration.seconds(2)

    package init() {}

    /// True if questions have to be asked apart.
    package func isApart(_ questions: [PolicyQuestion]) -> Bool {
        losses >= Self.mostLosses || !suspects.isEmpty && questions.contains { isSuspect($0) }
    }

    package func isSuspect(_ question: PolicyQuestion) -> Bool { suspects[Policies(question)] != nil }

    /// The subjects of a question that must not be asked about, by their places.
    package func barred(of question: PolicyQuestion) -> Set<Int> {
        guard !barred.isEmpty else { return [] }
        return Set(question.subjects.indices.filter { barred[asker($0, of: question)] != nil })
    }

    /// Forgets old records.
    package mutating func forgetOld(at now: Instant) {
        if !suspects.isEmpty { suspects = suspects.filter { $0.value > now } }
        if !barred.isEmpty { barred = barred.filter { $0.value > now } }
        if !lockedPolicies.isEmpty { lockedPolicies = lockedPolicies.filter { $0.value + Self.bar > now } }
        if !lockedAskers.isEmpty { lockedAskers = lockedAskers.filter { $0.value + Self.bar > now } }
    }

    // MARK: Locks

    /// True if all of a question waited for a lock the last time.
    package func isLocked(_ question: PolicyQuestion) -> Bool { lockedPolicies[Policies(question)] != nil }

    /// True if a question must not be asked now, because all of it waited for a lock a moment ago.
    package func isResting(_ question: PolicyQuestion, at now: Instant) -> Bool {
        lockedPolicies[Policies(question)].map { $0 > now } ?? false
    }

    /// The subjects of a question that waited for a lock by themselves the last time, by their places, and whether they may
    /// be asked about again now.
    package func locked(of question: PolicyQuestion, at now: Instant) -> [Int: Bool] {
        guard !lockedAskers.isEmpty else { return [:] }
        var found: [Int: Bool] = [:]
        for subject in question.subjects.indices {
            if let next = lockedAskers[asker(subject, of: question)] { found[subject] = next <= now }
        }
        return found
    }

    /// A question was asked, or some of its subjects were.
    ///
    /// - Parameters:
    ///   - locked: the subjects that waited for a lock.
    ///   - alone: those of them that did so by themselves; for the others it is presumed.
    package mutating func recordAsked(
        _ question: PolicyQuestion, locked: Set<Int>, alone: Set<Int>, at now: Instant
    ) {
        if locked.isEmpty, lockedPolicies.isEmpty, lockedAskers.isEmpty { return }
        if locked.count < question.subjects.count {
            lockedPolicies[Policies(question)] = nil
        } else if locked.count > max(alone.count, 1) {
            lockedPolicies[Policies(question)] = now + Self.lockPause
        }
        if lockedAskers.count >= Self.mostBarred { lockedAskers.removeAll() }
        for subject in question.subjects.indices {
            if alone.contains(subject) {
                lockedAskers[asker(subject, of: question)] = now + Self.lockPause
            } else if !locked.contains(subject) {
                lockedAskers[asker(subject, of: question)] = nil
            }
        }
    }

    // MARK: Sessions

    package mutating func lostTogether() { losses += 1 }

    package mutating func recordAnswered() { losses = 0 }

    /// A question ended the session by itself.
    package mutating func suspectQuestion(_ question: PolicyQuestion, at now: Instant) {
        suspects[Policies(question)] = now + Self.bar
    }

    /// Each of the question's subjects was asked about alone.
    package mutating func clearSuspect(_ question: PolicyQuestion) {
        suspects[Policies(question)] = nil
        struck.removeAll()
    }

    /// A subject ended the session alone.
    ///
    /// - Returns: true if that was the second time, so that the subject is no longer asked about.
    package mutating func strikeSubject(_ subject: Int, of question: PolicyQuestion, at now: Instant) -> Bool {
        if barred.count >= Self.mostBarred { barred.removeAll() }
        if struck.count >= Self.mostBarred { struck.removeAll() }
        let asker = asker(subject, of: question)
        guard struck.remove(asker) != nil else {
            struck.insert(asker)
            return false
        }
        barred[asker] = now + Self.bar
        return true
    }

    private func asker(_ subject: Int, of question: PolicyQuestion) -> Asker {
        let subject = question.subjects[subject]
        return Asker(policies: Policies(question), claims: subject.claims, topic: subject.topic.map { Name($0) })
    }
}

import Hub
import Wire

/// What asking policies has cost: a user for whom a policy ends the session that asks it must not end every session for ever.
///
/// Questions that cost their session twice are asked apart, and of one that costs it by itself each subject alone; a subject
/// that does so twice is not asked for again for a while. It is remembered over sessions, as a server that crashes takes some time
/// to come back.
///
/// Nor must a lock that a policy waits for hold up everybody: whom it was waited for is asked for again after a pause, and then
/// without the others and for a moment only, until there is an answer. Pure; time is passed in.
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

    /// Sessions that ended while questions were asked together, one after the other.
    private var losses = 0
    /// Questions that cost their session when they were asked by themselves.
    private var suspects: [Policies: Instant] = [:]
    /// Subjects that have cost a session alone, once; and those that did so twice.
    private var struck: Set<Asker> = []
    private var barred: [Asker: Instant] = [:]
    /// When to ask again after a lock: questions of which nobody was answered, and subjects who waited for it alone.
    private var lockedPolicies: [Policies: Instant] = [:]
    private var lockedAskers: [Asker: Instant] = [:]

    /// A session may end for any reason; two in a row for the same questions are no chance.
    private static let mostLosses = 2
    /// How long somebody is not asked for, and the patience that `PostponedChanges` has with policies that fail.
    package static let bar = PostponedChanges.resignation
    /// More are not remembered: each has cost a session, or a wait.
    private static let mostBarred = 10_000
    /// How long whom a lock is waited for is not asked for: a fraction of the patience that `PostponedChanges` has.
    static let lockPause = Duration.seconds(2)

    package init() {}

    /// Whether questions are to be asked apart.
    package func isApart(_ questions: [PolicyQuestion]) -> Bool {
        losses >= Self.mostLosses || !suspects.isEmpty && questions.contains { isSuspect($0) }
    }

    package func isSuspect(_ question: PolicyQuestion) -> Bool { suspects[Policies(question)] != nil }

    /// The subjects of a question that are not to be asked for, by their places.
    package func barred(of question: PolicyQuestion) -> Set<Int> {
        guard !barred.isEmpty else { return [] }
        return Set(question.subjects.indices.filter { barred[asker($0, of: question)] != nil })
    }

    /// What was noted long ago counts no more.
    package mutating func forgetOld(at now: Instant) {
        if !suspects.isEmpty { suspects = suspects.filter { $0.value > now } }
        if !barred.isEmpty { barred = barred.filter { $0.value > now } }
        if !lockedPolicies.isEmpty { lockedPolicies = lockedPolicies.filter { $0.value + Self.bar > now } }
        if !lockedAskers.isEmpty { lockedAskers = lockedAskers.filter { $0.value + Self.bar > now } }
    }

    // MARK: Locks

    /// Whether all of a question waited for a lock the last time.
    package func isLocked(_ question: PolicyQuestion) -> Bool { lockedPolicies[Policies(question)] != nil }

    /// Whether a question is not to be asked now, as all of it waited for a lock a moment ago.
    package func rests(_ question: PolicyQuestion, at now: Instant) -> Bool {
        lockedPolicies[Policies(question)].map { $0 > now } ?? false
    }

    /// The subjects of a question who waited for a lock by themselves the last time, by their places, and whether they are to be
    /// asked for again now.
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
    ///   - locked: the subjects who waited for a lock.
    ///   - alone: those of them who did so by themselves; of the others it is presumed.
    package mutating func asked(
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

    package mutating func answered() { losses = 0 }

    /// A question cost its session by itself.
    package mutating func suspect(_ question: PolicyQuestion, at now: Instant) {
        suspects[Policies(question)] = now + Self.bar
    }

    /// Each of its subjects was asked for alone.
    package mutating func acquit(_ question: PolicyQuestion) {
        suspects[Policies(question)] = nil
        struck.removeAll()
    }

    /// A subject cost its session alone.
    ///
    /// - Returns: whether that was the second time, so that it is not asked for any more.
    package mutating func strike(_ subject: Int, of question: PolicyQuestion, at now: Instant) -> Bool {
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

import Hub
import Wire

/// What asking policies has cost: a user for whom a policy ends the session that asks it must not end every session for ever.
///
/// Questions that cost their session twice are asked apart, and of one that costs it by itself each subject alone; a subject
/// that does so twice is not asked for again for a while. It is remembered over sessions, as a server that crashes takes some time
/// to come back. Pure; time is passed in.
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

    /// A session may end for any reason; two in a row for the same questions are no chance.
    private static let mostLosses = 2
    /// How long somebody is not asked for, and the patience that `PostponedChanges` has with policies that fail.
    package static let bar = PostponedChanges.resignation
    /// More are not remembered: each has cost a session.
    private static let mostBarred = 10_000

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
    }

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

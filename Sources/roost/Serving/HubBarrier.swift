import ChangeFeed
import Clustering
import Dispatch
import Gateway
import Ops
import StreamFiles
import Synchronization

/// Waits until everything that had reached the hub before is done: bytes in its sockets, appends, committed rows,
/// entries of the shared log. Figures are published last.
///
/// The rooms are asked one after the other, and the loops before and after each of them, because what a room has done leaves
/// through the loops. The loops' work may in turn concern the streams and the other hubs, so these are asked both
/// before the feed and after.
struct HubBarrier: Barrier {
    let gateway: Gateway
    let subscriptions: ChangeService
    let authority: PolicyAuthority
    let streams: FileStreamService?
    let cluster: ClusterService?

    /// Asks a room whether everything is done; answered once.
    private typealias Question = @Sendable (_ done: @escaping @Sendable (Bool) -> Void) -> Void

    /// The pause before a room is asked again.
    private static let pause = Duration.milliseconds(5)

    func awaitSettling(within patience: Duration, then done: @escaping @Sendable (_ problem: String?) -> Void) {
        Task { done(await settleRooms(by: .now + patience)) }
    }

    private func settleRooms(by deadline: ContinuousClock.Instant) async -> String? {
        let loops: Question = { [gateway] in gateway.awaitQuiet(then: $0) }
        var shared: [(problem: String, question: Question)] = []
        if let streams { shared.append(("the streams are not written", { streams.awaitCommits($0) })) }
        if let cluster { shared.append(("the other hubs are not reached", { cluster.awaitHead($0) })) }
        let feed: Question = { [subscriptions] in subscriptions.awaitWindow($0) }
        let rights: Question = { [authority] in authority.awaitAnswers($0) }
        let undecided = "the policies for private channels are not answered"
        let behind = "the change feed has not delivered all that was committed"
        // A join that waited for the feed may have held back a message, whose right is only checked then.
        let own = [(undecided, rights), (behind, feed), (undecided, rights)]
        for (problem, question) in shared + own + shared {
            guard await isDone(loops, by: deadline) else { return "the event loops are busy" }
            guard await isDone(question, by: deadline) else { return problem }
        }
        guard await isDone(loops, by: deadline) else { return "the event loops are busy" }
        let publish: Question = { [gateway] done in gateway.publishFigures { done(true) } }
        return await isDone(publish, by: deadline) ? nil : "the event loops are busy"
    }

    /// Asks until the answer is yes.
    private func isDone(_ question: Question, by deadline: ContinuousClock.Instant) async -> Bool {
        repeat {
            let left = max(.zero, deadline - .now) / .seconds(1)
            let isDone = await withCheckedContinuation { continuation in
                let answer = FirstAnswer(continuation)
                DispatchQueue.global().asyncAfter(deadline: .now() + left) { answer.resume(returning: false) }
                question { answer.resume(returning: $0) }
            }
            if isDone { return true }
            do { try await Task.sleep(for: Self.pause) } catch { return false }
        } while ContinuousClock.now < deadline
        return false
    }
}

/// Resumes with the first of two answers: the room's, or the timeout.
private final class FirstAnswer: Sendable {
    private let continuation: Mutex<CheckedContinuation<Bool, Never>?>

    init(_ continuation: CheckedContinuation<Bool, Never>) { self.continuation = Mutex(continuation) }

    func resume(returning answer: Bool) {
        continuation.withLock { continuation in
            continuation?.resume(returning: answer)
            continuation = nil
        }
    }
}

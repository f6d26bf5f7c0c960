import Synchronization

/// Connects the loops with the code that asks for receipts: it forwards answers and knows the rows that are waited for.
///
/// Shared by all loops; safe from any thread.
package final class ReceiptRegistry: Sendable {
    private let awaited = Mutex<Set<Int64>>([])
    private let isAwaited = Atomic(false)
    private let answer = Mutex<(@Sendable ([ReceiptAnswer]) -> Void)?>(nil)

    package init() {}

    /// Sets the receiver of answers. It is called on the loops' threads and must not block.
    package func sendAnswers(to receive: @escaping @Sendable ([ReceiptAnswer]) -> Void) {
        answer.withLock { $0 = receive }
    }

    /// Sets the rows (`RowChange.id`) with open questions of users that may come back: sending one of them later, as a
    /// missed change, is recorded.
    package func awaitReceipts(of changes: Set<Int64>) {
        awaited.withLock { $0 = changes }
        isAwaited.store(!changes.isEmpty, ordering: .releasing)
    }

    func awaitsReceipt(of change: Int64) -> Bool {
        isAwaited.load(ordering: .acquiring) && awaited.withLock { $0.contains(change) }
    }

    func forwardAnswers(_ answers: [ReceiptAnswer]) {
        let receive = answer.withLock { $0 }
        receive?(answers)
    }
}

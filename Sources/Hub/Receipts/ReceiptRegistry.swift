import Synchronization

/// What the loops and those who ask for receipts have in common: whose answers go where, and which rows somebody waits for.
///
/// One for all loops; safe from any thread.
package final class ReceiptRegistry: Sendable {
    private let awaited = Mutex<Set<Int64>>([])
    private let isAwaited = Atomic(false)
    private let answer = Mutex<(@Sendable ([ReceiptAnswer]) -> Void)?>(nil)

    package init() {}

    /// From here on answers go there; it is called on the loops' threads, and must not wait.
    package func sendAnswers(to receive: @escaping @Sendable ([ReceiptAnswer]) -> Void) {
        answer.withLock { $0 = receive }
    }

    /// The rows (`RowChange.id`) that are not settled for somebody who may come back: who is sent one of them later, as what it
    /// missed, is noted.
    package func awaitReceipts(of changes: Set<Int64>) {
        awaited.withLock { $0 = changes }
        isAwaited.store(!changes.isEmpty, ordering: .releasing)
    }

    func awaitsReceipt(of change: Int64) -> Bool {
        isAwaited.load(ordering: .acquiring) && awaited.withLock { $0.contains(change) }
    }

    func send(_ answers: [ReceiptAnswer]) {
        let receive = answer.withLock { $0 }
        receive?(answers)
    }
}

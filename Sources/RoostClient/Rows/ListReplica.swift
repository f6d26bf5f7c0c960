import Foundation
import Synchronization
package import Wire

/// A list of rows built from the hub's frames: the rows that were read, with every later change applied.
///
/// It has the first rows of the order, up to its *edge*: no row before the edge is missing. Rows after it are dropped,
/// and changes there are ignored; if deletions leave fewer rows than are shown, the list is read again (`lacksRows`).
///
/// The engine changes it, and the sequence's consumer reads the last published state.
package final class ListReplica: Sendable {
    /// One row of the list.
    package struct Entry: Sendable {
        package let key: String
        /// The row as a JSON object.
        package let json: JSON
        /// The unique number of this version of the row.
        package let version: Int
        /// Parts of the row that the hub could not send.
        package let errors: [String]
        let place: RowPlace
    }

    /// The list as shown.
    package struct Shown: Sendable {
        package var entries: [Entry] = []
        /// True if the list has its rows, or had them when it was stored.
        package var hasRows = false
        package var hasMore = false
        package var isLive = false
        package var problem: String?
    }

    private struct State {
        var entries: [Entry] = []
        /// Rows after the edge may be missing; nil if the list has all rows. The edge may be the place of a deleted
        /// row.
        var edge: (place: RowPlace, json: JSON)?
        var hasRows = false
        /// The previous content, which is used again if the reading fails.
        var before: (entries: [Entry], edge: (place: RowPlace, json: JSON)?)?
        /// True while rows arrive, which are shown only once all of them are there.
        var isReading = false
        /// True if they arrive in a channel that resumes at its cursor: older changes follow, and the list is right
        /// once it is live.
        var isSettling = false
        var isLive = false
        var cursor: String?
        var problem: String?
        var versions = 0
        var memory: RowMemory
        var shown = Shown()
    }

    package let request: ListRequest
    private let state: Mutex<State>
    package let news = Mailbox<Void>(limit: 1, countsMissed: false)
    /// Called with each row that arrives, before it is shown.
    private let onRow: @Sendable (JSON) -> Void
    /// Called when a reading of the list begins (true), and when it has ended (false).
    private let onReading: @Sendable (Bool) -> Void
    /// Called when there is something to store.
    private let onChange: @Sendable () -> Void

    package init(
        _ request: ListRequest, stored: StoredRows? = nil, dedupeLimit: Int,
        onRow: @escaping @Sendable (JSON) -> Void = { _ in }, onReading: @escaping @Sendable (Bool) -> Void = { _ in },
        onChange: @escaping @Sendable () -> Void = {}
    ) {
        self.request = request
        self.onRow = onRow
        self.onReading = onReading
        self.onChange = onChange
        state = Mutex(State(memory: RowMemory(limit: max(dedupeLimit, request.capacity))))
        if let stored { restoreRows(stored) }
    }

    /// The position after which changes continue this list; nil if it has no rows.
    package var cursor: String? { state.withLock { $0.cursor } }

    package var shown: Shown { state.withLock { $0.shown } }

    /// True if fewer rows are left than are shown, and there may be more.
    package var lacksRows: Bool {
        state.withLock { $0.hasRows && !$0.isReading && $0.edge != nil && $0.entries.count < request.limit }
    }

    // MARK: Frames of the hub

    /// The rows follow, as changes.
    package func readingBegan(isResumed: Bool) {
        onReading(true)
        state.withLock { state in
            state.before = state.before ?? (state.entries, state.edge)
            (state.entries, state.edge) = ([], nil)
            state.memory.forgetRows()
            state.isReading = true
            state.isSettling = isResumed
        }
    }

    /// The reading has ended.
    package func readingEnded(_ answer: RequestedLists.Answer, cursor: String?) {
        state.withLock { state in
            state.isReading = false
            state.problem = answer.problem
            if answer.problem != nil {
                Self.breakOff(&state)
            } else {
                state.before = nil
                state.hasRows = true
                state.cursor = cursor ?? state.cursor
                state.edge = answer.next.map { (RowPlace(of: $0, in: request.order), $0) }
                if let edge = state.edge {
                    state.entries.removeAll { request.order.isIncreasing(edge.place, $0.place) }
                }
                trimEntries(&state)
            }
        }
        if answer.problem == nil { onReading(false) }
        publishShown()
    }

    /// Applies a change, or one of the rows that are being read.
    package func applyChange(_ change: IncomingChange) {
        if let row = change.record, change.kind != .delete { onRow(row) }
        let isApplied = state.withLock { state in
            guard state.isReading || state.hasRows && !change.isSnapshot else { return false }
            if let cursor = change.cursor, state.hasRows { state.cursor = cursor }
            guard let key = request.identity(of: change.kind == .delete ? change.old : change.record) else {
                return false
            }
            guard change.isSnapshot || state.memory.isNews(RowIdentity(key), ChangeVersion(change)) else {
                return false
            }
            // The key of a row may change.
            let old = change.kind == .update ? request.identity(of: change.old) ?? key : key
            state.entries.removeAll { $0.key == key || $0.key == old }
            guard change.kind != .delete, let row = change.record else { return true }
            let place = RowPlace(of: row, in: request.order)
            if let edge = state.edge, request.order.isIncreasing(edge.place, place) { return true }
            state.versions += 1
            let entry = Entry(key: key, json: row, version: state.versions, errors: change.errors, place: place)
            state.entries.insert(entry, at: insertionIndex(of: place, in: state.entries))
            if !state.isReading { trimEntries(&state) }
            return true
        }
        if isApplied { publishShown() }
    }

    /// Changes are live from now on, or no longer.
    package func setLive(_ isLive: Bool, cursor: String?) {
        state.withLock { state in
            state.isLive = isLive && state.problem == nil
            if isLive, state.hasRows { state.cursor = cursor ?? state.cursor }
            if state.isReading { Self.breakOff(&state) }
            state.isSettling = false
        }
        publishShown()
    }

    /// Ends a reading that will be repeated: the previous content stays visible.
    private static func breakOff(_ state: inout State) {
        state.isReading = false
        if let before = state.before { (state.entries, state.edge) = before }
        state.before = nil
    }

    package func finish(_ error: RoostError?) { news.finish(error) }

    /// Shows a problem that does not come from the hub.
    func showProblem(_ problem: String) {
        state.withLock { $0.problem = problem }
        publishShown()
    }

    /// Makes the consumer check for news.
    func signalNews() { news.put(()) }

    // MARK: Storing

    /// The list for storing; nil if changes could not continue it.
    package func storedRows() -> StoredRows? {
        state.withLock { state in
            guard state.hasRows, state.problem == nil, !state.isReading, !state.isSettling, let cursor = state.cursor
            else { return nil }
            return StoredRows(
                request: request.text, cursor: cursor, rows: state.entries.map { Data($0.json.bytes) },
                edge: state.edge.map { Data($0.json.bytes) })
        }
    }

    private func restoreRows(_ stored: StoredRows) {
        guard stored.request == request.text else { return }
        let rows = stored.rows.compactMap { JSON(Array($0)[...]) }
        guard rows.count == stored.rows.count else { return }
        state.withLock { state in
            for row in rows {
                guard let key = request.identity(of: row) else { continue }
                state.versions += 1
                let place = RowPlace(of: row, in: request.order)
                state.entries.append(
                    Entry(key: key, json: row, version: state.versions, errors: [], place: place))
            }
            state.edge = stored.edge.flatMap { JSON(Array($0)[...]) }.map { (RowPlace(of: $0, in: request.order), $0) }
            state.cursor = stored.cursor
            state.hasRows = true
        }
        publishShown()
    }

    // MARK: Trimming and publishing

    private func trimEntries(_ state: inout State) {
        guard state.entries.count > request.capacity else { return }
        state.entries.removeLast(state.entries.count - request.capacity)
        state.edge = state.entries.last.map { ($0.place, $0.json) }
    }

    /// The index at which to insert a row, so that the entries stay in order.
    private func insertionIndex(of place: RowPlace, in entries: [Entry]) -> Int {
        var (low, high) = (0, entries.count)
        while low < high {
            let middle = (low + high) / 2
            if request.order.isIncreasing(entries[middle].place, place) { low = middle + 1 } else { high = middle }
        }
        return low
    }

    private func publishShown() {
        let isShown = state.withLock { state in
            guard !state.isReading, !state.isSettling else { return false }
            state.shown = Shown(
                entries: Array(state.entries.prefix(request.limit)), hasRows: state.hasRows,
                hasMore: state.edge != nil || state.entries.count > request.limit, isLive: state.isLive,
                problem: state.problem)
            return true
        }
        guard isShown else { return }
        onChange()
        news.put(())
    }
}

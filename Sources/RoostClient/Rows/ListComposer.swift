import Foundation
import Synchronization
import Wire

/// Builds lists of an app's own type from a replica's rows and pending ones. Unchanged rows are not decoded again.
final class ListComposer<Row: Decodable & Sendable>: Sendable {
    private enum Reading {
        case row(Row)
        case failure(String)
    }

    private struct State {
        /// The last decoding of each row, by its version.
        var readings: [Int: Reading] = [:]
    }

    private let replica: ListReplica
    private let pending: PendingList<Row>?
    private let column: String?
    private let decoder: JSONDecoder
    private let state = Mutex(State())

    init(_ replica: ListReplica, _ pending: PendingList<Row>?, localID column: String?, _ decoder: JSONDecoder) {
        self.replica = replica
        self.pending = pending
        self.column = column
        self.decoder = decoder
    }

    /// The current list; nil while nothing is known of it.
    func composeList() -> RowList<Row>? {
        let drafts = pending?.items ?? []
        let shown = replica.shown
        guard shown.hasRows || shown.problem != nil || !drafts.isEmpty else { return nil }
        var items: [ListedRow<Row>] = []
        items.reserveCapacity(shown.entries.count + drafts.count)
        var unreadable: [UnreadableListRow] = []
        state.withLock { state in
            var readings: [Int: Reading] = [:]
            for entry in shown.entries {
                let reading = state.readings[entry.version] ?? decodeRow(entry)
                readings[entry.version] = reading
                switch reading {
                case .row(let row): items.append(ListedRow(id: id(of: entry), row: row, state: .stored))
                case .failure(let reason):
                    unreadable.append(UnreadableListRow(json: Data(entry.json.bytes), reason: reason))
                }
            }
            state.readings = readings
        }
        let waiting = drafts.map { draft in
            ListedRow(id: Self.idText(draft.localID), row: draft.row, state: draft.isSent ? .sent : .pending)
        }
        let isDescending = replica.request.order.terms.first?.isDescending ?? false
        items = isDescending ? waiting.reversed() + items : items + waiting
        return RowList(
            items, hasMore: shown.hasMore, isLive: shown.isLive, problem: shown.problem, unreadable: unreadable)
    }

    private func decodeRow(_ entry: ListReplica.Entry) -> Reading {
        guard entry.errors.isEmpty else { return .failure(entry.errors.joined(separator: " ")) }
        do throws(RoostError) {
            return .row(try decoder.roostDecode(Row.self, from: Data(entry.json.bytes)))
        } catch {
            return .failure(error.description)
        }
    }

    private func id(of entry: ListReplica.Entry) -> String {
        guard let column, let localID = entry.json[column]?.string.flatMap(UUID.init) else { return entry.key }
        return Self.idText(localID)
    }

    private static func idText(_ localID: UUID) -> String { localID.uuidString.lowercased() }
}

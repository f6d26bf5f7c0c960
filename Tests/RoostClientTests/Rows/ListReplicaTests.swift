import Foundation
import RoostClient
import TestSupport
import Testing
import Wire

/// Lists of rows, as frames make them.
@Suite struct ListReplicaTests {
    private static func request(limit: Int = 3, order: RowOrder = .descending("n")) -> ListRequest {
        ListRequest(schema: "public", table: "t", filter: nil, order: order, limit: limit)
    }

    private static func row(_ id: Int, _ n: Int?, _ body: String = "") -> JSON {
        JSON(trusted: Array("{\"id\":\(id),\"n\":\(n.map(String.init) ?? "null"),\"body\":\"\(body)\"}".utf8)[...])
    }

    private static func change(
        _ kind: ChangeKind, _ row: JSON?, old: JSON? = nil, number: Int? = nil
    ) -> IncomingChange {
        IncomingChange(
            kind: kind, schema: "public", table: "t", record: row, old: old,
            cursor: number.map { "w." + String($0, radix: 36) }, commitTime: nil, errors: [],
            data: JSON(trusted: Array("{}".utf8)[...]), isSnapshot: number == nil)
    }

    private func read(_ list: ListReplica, _ rows: [JSON], next: JSON? = nil, isResumed: Bool = false) {
        list.readingBegan(isResumed: isResumed)
        for row in rows { list.applyChange(Self.change(.insert, row)) }
        list.readingEnded(RequestedLists.Answer(next: next, problem: nil), cursor: "read.1")
        list.setLive(true, cursor: nil)
    }

    private func ids(_ list: ListReplica) -> [Int] { list.shown.entries.compactMap { Int($0.key) } }

    @Test func rowsStandInTheirOrderWhateverComes() {
        let list = ListReplica(Self.request(), dedupeLimit: 100)
        #expect(!list.shown.hasRows)
        read(list, [Self.row(1, 10), Self.row(2, 30), Self.row(3, nil)])
        #expect(ids(list) == [3, 2, 1], "NULL is greater than all, as in Postgres")
        list.applyChange(Self.change(.insert, Self.row(4, 20), number: 1))
        #expect(ids(list) == [3, 2, 4] && list.shown.hasMore)
        list.applyChange(Self.change(.update, Self.row(1, 40), old: nil, number: 2))
        #expect(ids(list) == [3, 1, 2])
        list.applyChange(Self.change(.delete, nil, old: Self.row(3, nil), number: 3))
        #expect(ids(list) == [1, 2, 4] && !list.shown.hasMore)
        // The key changes.
        list.applyChange(Self.change(.update, Self.row(9, 40), old: Self.row(1, 40), number: 4))
        #expect(ids(list) == [9, 2, 4])
    }

    @Test func aRepeatChangesNothing() {
        let list = ListReplica(Self.request(), dedupeLimit: 100)
        read(list, [Self.row(1, 1, "a")])
        list.applyChange(Self.change(.update, Self.row(1, 1, "c"), number: 7))
        list.applyChange(Self.change(.update, Self.row(1, 1, "b"), number: 6))
        #expect(list.shown.entries.first?.json["body"]?.string == "c")
    }

    @Test func whatLiesBehindTheEdgeIsLeftOut() {
        let list = ListReplica(Self.request(limit: 1), dedupeLimit: 100)
        let rows = (0..<11).map { Self.row($0, 100 - $0) }
        read(list, rows, next: Self.row(10, 90))
        list.applyChange(Self.change(.insert, Self.row(50, 50), number: 1))
        #expect(ids(list) == [0])
        for id in 0..<11 { list.applyChange(Self.change(.delete, nil, old: Self.row(id, nil), number: 10 + id)) }
        #expect(list.lacksRows && ids(list).isEmpty, "50 is known to be behind rows that are not known")
        read(list, [Self.row(50, 50)])
        #expect(!list.lacksRows && ids(list) == [50])
    }

    @Test func aReadingThatBreaksOffShowsWhatWasThere() {
        let list = ListReplica(Self.request(), dedupeLimit: 100)
        read(list, [Self.row(1, 1), Self.row(2, 2)])
        list.readingBegan(isResumed: true)
        list.applyChange(Self.change(.insert, Self.row(5, 5)))
        #expect(ids(list) == [2, 1])
        list.setLive(false, cursor: nil)
        #expect(ids(list) == [2, 1] && !list.shown.isLive)
        list.readingBegan(isResumed: false)
        list.readingEnded(RequestedLists.Answer(next: nil, problem: "no"), cursor: "x.1")
        #expect(ids(list) == [2, 1] && list.shown.problem == "no" && list.storedRows() == nil)
    }

    @Test func beforeItIsLiveAListIsNotShownOlderChanges() {
        let list = ListReplica(Self.request(), dedupeLimit: 100)
        list.readingBegan(isResumed: true)
        list.applyChange(Self.change(.insert, Self.row(1, 1, "new")))
        list.readingEnded(RequestedLists.Answer(next: nil, problem: nil), cursor: "read.1")
        list.applyChange(Self.change(.update, Self.row(1, 1, "old"), number: 4))
        #expect(!list.shown.hasRows)
        list.applyChange(Self.change(.update, Self.row(1, 1, "new"), number: 5))
        list.setLive(true, cursor: "live.6")
        #expect(list.shown.entries.first?.json["body"]?.string == "new" && list.cursor == "live.6")
    }

    @Test func itGoesOnWhereItWasStored() throws {
        let list = ListReplica(Self.request(), dedupeLimit: 100)
        read(list, [Self.row(1, 1), Self.row(2, 2), Self.row(3, 3)], next: Self.row(1, 1))
        list.applyChange(Self.change(.insert, Self.row(4, 4), number: 9))
        let stored = try #require(list.storedRows())
        #expect(stored.cursor == "w.9" && stored.rows.count == 4)
        let again = ListReplica(Self.request(), stored: stored, dedupeLimit: 100)
        #expect(ids(again) == [4, 3, 2] && again.shown.hasMore && !again.shown.isLive && again.cursor == "w.9")
        again.applyChange(Self.change(.insert, Self.row(0, 0), number: 10))
        #expect(again.storedRows()?.rows.count == 4, "it lies behind the edge")
        let other = ListReplica(Self.request(limit: 4), stored: stored, dedupeLimit: 100)
        #expect(!other.shown.hasRows, "it asks for something else")
    }

    /// A table, the hub and a list: after each step the list is what SELECT … ORDER BY … LIMIT shows.
    @Test(arguments: 0..<40) func itIsWhatASelectShows(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let order: RowOrder = seed.isMultiple(of: 2) ? .ascending("n") : .descending("n").then(.ascending("id"))
        let request = Self.request(limit: Int.random(in: 1...8, using: &random), order: order)
        let list = ListReplica(request, dedupeLimit: 1_000)
        var table: [Int: Int?] = [:]
        func sorted() -> [Int] {
            let isDescending = !seed.isMultiple(of: 2)
            return table.sorted { one, other in
                let (left, right) = (one.value ?? .max, other.value ?? .max)
                return left == right ? one.key < other.key : (left < right) != isDescending
            }.map(\.key)
        }
        func readAll() {
            let rows = sorted()
            let sent = rows.prefix(request.capacity)
            let next = rows.count > sent.count ? sent.last.map { Self.row($0, table[$0] ?? nil) } : nil
            read(list, sent.map { Self.row($0, table[$0] ?? nil) }, next: next)
        }
        for id in 0..<20 { table[id] = .some(Int.random(in: 0..<10, using: &random)) }
        readAll()
        for number in 1...300 {
            let id = Int.random(in: 0..<40, using: &random)
            if let value = table[id], Int.random(in: 0..<3, using: &random) > 0 {
                table[id] = nil
                list.applyChange(Self.change(.delete, nil, old: Self.row(id, value), number: number))
            } else {
                let isNew = table[id] == nil
                let value = Int.random(in: 0..<12, using: &random)
                table[id] = .some(value == 11 ? nil : value)
                let row = Self.row(id, table[id] ?? nil)
                list.applyChange(Self.change(isNew ? .insert : .update, row, old: isNew ? nil : row, number: number))
            }
            if list.lacksRows { readAll() }
            #expect(ids(list) == Array(sorted().prefix(request.limit)))
        }
    }

    @Test func filesAreNamedByAnyText() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("rows-\(UUID())")
        defer { do { try FileManager.default.removeItem(at: folder) } catch { Issue.record(error) } }
        let storage = FileRowStorage(in: folder)
        let rows = StoredRows(request: "r", cursor: "c", rows: [Data("{\"a\":\"ü\\n\"}".utf8)], edge: nil)
        let long = String(repeating: "é/", count: 300)
        for name in ["a", "A", "../x", "", long, long + "x"] {
            #expect(try storage.load(name) == nil)
            try storage.save(rows, as: name)
            #expect(try storage.load(name) == rows)
        }
        try storage.remove("a")
        #expect(try storage.load("a") == nil)
        try Data("{\"torn".utf8).write(to: folder.appendingPathComponent("a.rows"))
        #expect(try storage.load("a") == nil)
    }
}

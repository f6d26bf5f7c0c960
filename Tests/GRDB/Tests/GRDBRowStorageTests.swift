import Foundation
import GRDB
import RoostClient
import RoostClientGRDB
import Testing

/// Lists of rows in a database of GRDB's.
@Suite struct GRDBRowStorageTests {
    private let database: DatabaseQueue
    private let storage: GRDBRowStorage

    init() throws {
        database = try DatabaseQueue()
        storage = try GRDBRowStorage(in: database)
    }

    private func rows(_ ids: [Int], cursor: String = "c", edge: Data? = nil) -> StoredRows {
        StoredRows(request: "r", cursor: cursor, rows: ids.map { Data("{\"id\":\($0)}".utf8) }, edge: edge)
    }

    @Test func aListIsWhatWasSavedLast() throws {
        #expect(try storage.load("a") == nil)
        for (number, ids) in [[1, 2, 3], [0, 1, 2], [1], [], [5, 4, 3, 2, 1]].enumerated() {
            let saved = rows(ids, cursor: "c\(number)", edge: number.isMultiple(of: 2) ? Data("{}".utf8) : nil)
            try storage.save(saved, as: "a")
            #expect(try storage.load("a") == saved)
        }
        try storage.save(rows([9]), as: "b")
        try storage.remove("a")
        #expect(try storage.load("a") == nil && storage.load("b") == rows([9]))
        #expect(try database.read { db in try Int.fetchOne(db, sql: "select count(*) from roost_row") } == 1)
    }

    @Test func theTablesMayBeThere() throws {
        try storage.save(rows([1]), as: "a")
        #expect(try GRDBRowStorage(in: database).load("a") == rows([1]))
    }

    @Test func onlyWhatDiffersIsWritten() throws {
        try storage.save(rows(Array(0..<1000)), as: "a")
        let before = try database.read { db in db.totalChangesCount }
        try storage.save(rows(Array(0..<1000) + [1000]), as: "a")
        #expect(try database.read { db in db.totalChangesCount } - before == 2, "the list, and one row")
    }
}

#if GRDB
    import Foundation
    public import GRDB
    public import RoostClient

    /// Keeps lists of rows in the app's own SQLite database, by GRDB: in two tables, `roost_list` and `roost_row`.
    ///
    /// ```swift
    /// let storage = try GRDBRowStorage(in: DatabaseQueue(path: path))
    /// let messages = room.rows(of: Message.self, in: "messages", keeping: .kept(in: storage, as: "ada-messages"))
    /// ```
    ///
    /// It is there with the package's trait `GRDB`.
    public struct GRDBRowStorage: RowStorage {
        private let database: any DatabaseWriter

        private struct List: Codable, FetchableRecord, PersistableRecord {
            static let databaseTableName = "roost_list"
            let name: String
            let request: String
            let cursor: String
            let edge: Data?
        }

        private struct Entry: Codable, Equatable, FetchableRecord, PersistableRecord {
            static let databaseTableName = "roost_row"
            let list: String
            let place: Int
            let json: Data
        }

        /// Makes the tables if they are not there.
        public init(in database: any DatabaseWriter) throws {
            self.database = database
            try database.write { db in
                try db.create(table: List.databaseTableName, options: .ifNotExists) { table in
                    table.primaryKey("name", .text)
                    table.column("request", .text).notNull()
                    table.column("cursor", .text).notNull()
                    table.column("edge", .blob)
                }
                try db.create(table: Entry.databaseTableName, options: .ifNotExists) { table in
                    table.column("list", .text).notNull().references(List.databaseTableName, onDelete: .cascade)
                    table.column("place", .integer).notNull()
                    table.column("json", .blob).notNull()
                    table.primaryKey(["list", "place"])
                }
            }
        }

        public func load(_ name: String) throws -> StoredRows? {
            try database.read { db in
                guard let list = try List.fetchOne(db, key: name) else { return nil }
                return StoredRows(
                    request: list.request, cursor: list.cursor, rows: try Self.entries(of: name, db).map(\.json),
                    edge: list.edge)
            }
        }

        /// Writes what differs from what is there, in one transaction.
        public func save(_ rows: StoredRows, as name: String) throws {
            try database.write { db in
                try List(name: name, request: rows.request, cursor: rows.cursor, edge: rows.edge).upsert(db)
                let before = try Self.entries(of: name, db)
                for (place, json) in rows.rows.enumerated() {
                    let entry = Entry(list: name, place: place, json: json)
                    if place >= before.count || before[place] != entry { try entry.upsert(db) }
                }
                try Entry.filter(Column("list") == name && Column("place") >= rows.rows.count).deleteAll(db)
            }
        }

        public func remove(_ name: String) throws {
            _ = try database.write { db in try List.deleteOne(db, key: name) }
        }

        private static func entries(of name: String, _ db: Database) throws -> [Entry] {
            try Entry.filter(Column("list") == name).order(Column("place")).fetchAll(db)
        }
    }
#endif

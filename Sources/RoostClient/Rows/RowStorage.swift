public import Foundation

/// The storage of lists of rows between two runs of the app, so that it opens offline with its last content.
///
/// Lost data is read from the hub again: a list that is missing or outdated is not an error.
public protocol RowStorage: Sendable {
    /// Returns the list of that name; nil if there is none. Called when the list is created, which waits for it.
    func load(_ name: String) throws -> StoredRows?

    /// Replaces the list of that name. Called on a thread of the list's own, some time after a change.
    func save(_ rows: StoredRows, as name: String) throws

    /// Removes a list; a missing one is not an error.
    func remove(_ name: String) throws
}

/// A list as stored.
public struct StoredRows: Codable, Sendable, Equatable {
    /// The list's request; a list with another request does not use these rows.
    public let request: String
    /// The position after which changes continue the list.
    public let cursor: String
    /// The rows in order, as JSON objects.
    public let rows: [Data]
    /// The place up to which no row is missing, as a JSON object; nil if the list has all rows.
    public let edge: Data?

    /// Creates a list from its fields, for storages that keep them apart.
    public init(request: String, cursor: String, rows: [Data], edge: Data?) {
        self.request = request
        self.cursor = cursor
        self.rows = rows
        self.edge = edge
    }
}

/// The storage of a list of rows, with the list's name.
public struct RowKeeping: Sendable {
    let storage: any RowStorage
    let name: String

    /// - Parameter name: identifies the list in the storage. It should include the user whose rows they are, and the
    ///   list's filter.
    public static func kept(in storage: some RowStorage, as name: String) -> RowKeeping {
        RowKeeping(storage: storage, name: name)
    }
}

/// Stores each list in a file of its own in one folder.
public struct FileRowStorage: RowStorage {
    private let folder: URL

    /// - Parameter folder: created if it is missing. The app's caches are a good place: files that the system deletes
    ///   are read from the hub again.
    public init(in folder: URL) { self.folder = folder }

    public func load(_ name: String) throws -> StoredRows? {
        let file = fileURL(name)
        guard FileManager.default.fileExists(atPath: file.path) else { return nil }
        let bytes = try Data(contentsOf: file)
        // It was written by another version, or incompletely because of a power loss.
        do { return try JSONDecoder().decode(StoredRows.self, from: bytes) } catch { return nil }
    }

    public func save(_ rows: StoredRows, as name: String) throws {
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        try JSONEncoder().encode(rows).write(to: fileURL(name), options: .atomic)
    }

    public func remove(_ name: String) throws {
        let file = fileURL(name)
        if FileManager.default.fileExists(atPath: file.path) { try FileManager.default.removeItem(at: file) }
    }

    /// Names are the app's, and may contain characters that file names cannot.
    private func fileURL(_ name: String) -> URL {
        let digits = Array("0123456789abcdef".utf8)
        var text: [UInt8] = []
        for byte in name.utf8 {
            let isPlain = (0x30...0x39).contains(byte) || (0x61...0x7A).contains(byte) || byte == 0x2D
            text += isPlain ? [byte] : [0x5F, digits[Int(byte >> 4)], digits[Int(byte & 15)]]
        }
        // File names are limited to 255 bytes.
        if text.count > 200 {
            let hash = name.utf8.reduce(0xcbf2_9ce4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
            text = text.prefix(180) + Array("_".utf8) + Array(String(hash, radix: 16).utf8)
        }
        return folder.appendingPathComponent(String(decoding: text, as: UTF8.self) + ".rows")
    }
}

public import Foundation

/// Where lists of rows are kept between two runs of the app, so that it opens offline with what it showed last.
///
/// Whatever is lost here is read from the hub again: a list that is missing, or one of before, is no error.
public protocol RowStorage: Sendable {
    /// The list of that name; nil if there is none. It is called by whoever makes the list, who waits for it.
    func load(_ name: String) throws -> StoredRows?

    /// Puts a list in the place of the one of that name. It is called on a thread of the list's own, some time after a change.
    func save(_ rows: StoredRows, as name: String) throws

    /// Removes a list; one that is not there is no error.
    func remove(_ name: String) throws
}

/// A list as a storage keeps it.
public struct StoredRows: Codable, Sendable, Equatable {
    /// What the list asks the hub for; one that asks for something else does not take these rows.
    public let request: String
    /// Behind which change the list goes on.
    public let cursor: String
    /// The rows, in their order, as JSON objects.
    public let rows: [Data]
    /// The place up to which no row is missing, as a JSON object; nil if the list has all rows.
    public let edge: Data?

    /// Makes a list from its fields, for storages that keep them apart.
    public init(request: String, cursor: String, rows: [Data], edge: Data?) {
        self.request = request
        self.cursor = cursor
        self.rows = rows
        self.edge = edge
    }
}

/// Where a list of rows is kept.
public struct RowKeeping: Sendable {
    let storage: any RowStorage
    let name: String

    /// - Parameter name: tells the list from others in the same storage. It should name the user, too, whose rows they are, and what the
    ///   list is filtered by.
    public static func kept(in storage: some RowStorage, as name: String) -> RowKeeping {
        RowKeeping(storage: storage, name: name)
    }
}

/// Keeps each list in a file of its own in one folder.
public struct FileRowStorage: RowStorage {
    private let folder: URL

    /// - Parameter folder: is made if it is not there. The app's caches are a good place: what the system deletes is read again.
    public init(in folder: URL) { self.folder = folder }

    public func load(_ name: String) throws -> StoredRows? {
        let file = file(name)
        guard FileManager.default.fileExists(atPath: file.path) else { return nil }
        let bytes = try Data(contentsOf: file)
        // Written by another version, or torn by the loss of power.
        do { return try JSONDecoder().decode(StoredRows.self, from: bytes) } catch { return nil }
    }

    public func save(_ rows: StoredRows, as name: String) throws {
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        try JSONEncoder().encode(rows).write(to: file(name), options: .atomic)
    }

    public func remove(_ name: String) throws {
        let file = file(name)
        if FileManager.default.fileExists(atPath: file.path) { try FileManager.default.removeItem(at: file) }
    }

    /// Names are the app's, and may have characters that a file's cannot.
    private func file(_ name: String) -> URL {
        let digits = Array("0123456789abcdef".utf8)
        var text: [UInt8] = []
        for byte in name.utf8 {
            let isPlain = (0x30...0x39).contains(byte) || (0x61...0x7A).contains(byte) || byte == 0x2D
            text += isPlain ? [byte] : [0x5F, digits[Int(byte >> 4)], digits[Int(byte & 15)]]
        }
        // A file's name has 255 bytes.
        if text.count > 200 {
            let hash = name.utf8.reduce(0xcbf2_9ce4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
            text = text.prefix(180) + Array("_".utf8) + Array(String(hash, radix: 16).utf8)
        }
        return folder.appendingPathComponent(String(decoding: text, as: UTF8.self) + ".rows")
    }
}

import Foundation

/// A folder that goes with its test.
final class TemporaryFolder {
    private let folder = FileManager.default.temporaryDirectory.appendingPathComponent("roost-outbox-\(UUID())")

    init() throws { try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true) }

    deinit {
        do { try FileManager.default.removeItem(at: folder) } catch {
            // The system empties its folder for such files.
        }
    }

    var file: URL { folder.appendingPathComponent("outbox") }

    func bytes() throws -> Data { try Data(contentsOf: file) }
}

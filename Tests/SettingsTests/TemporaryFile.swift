import Foundation

/// A file that is gone when the closure returns.
func withFile<Result>(_ text: String, _ body: (String) async throws -> Result) async throws -> Result {
    let path = FileManager.default.temporaryDirectory.appending(path: "roost-\(UUID().uuidString).yaml")
    try text.write(to: path, atomically: true, encoding: .utf8)
    defer {
        do { try FileManager.default.removeItem(at: path) } catch { print("cannot remove \(path): \(error)") }
    }
    return try await body(path.path(percentEncoded: false))
}

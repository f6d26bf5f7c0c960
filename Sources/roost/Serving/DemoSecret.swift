import Foundation

/// The demo's signing secret, made once and kept, so that open pages survive a restart.
enum DemoSecret {
    static func load(from folder: URL) throws -> String {
        let file = folder.appendingPathComponent("jwt-secret")
        if FileManager.default.fileExists(atPath: file.path) {
            return try String(contentsOf: file, encoding: .utf8)
        }
        var generator = SystemRandomNumberGenerator()
        let secret = (0..<4).map { _ in String(generator.next() as UInt64, radix: 36) }.joined(separator: "-")
        let isMade = FileManager.default.createFile(
            atPath: file.path, contents: Data(secret.utf8), attributes: [.posixPermissions: 0o600])
        guard isMade else { throw RunFailure("Cannot write \(file.path); choose another folder with --folder.") }
        return secret
    }
}

import Foundation

/// Runs scripts with psql against the database that `ROOST_TEST_DATABASE_URL` names.
struct Psql {
    struct Failure: Error {
        let output: String
    }

    static let url = ProcessInfo.processInfo.environment["ROOST_TEST_DATABASE_URL"]

    /// The rows of all of the script's results, one line each, columns separated by `|`.
    @discardableResult
    func run(_ script: String) throws -> [String] {
        let base = FileManager.default.temporaryDirectory.appendingPathComponent("roost-psql-\(UUID().uuidString)")
        let input = base.appendingPathExtension("sql")
        let output = base.appendingPathExtension("out")
        try Data(script.utf8).write(to: input)
        defer {
            try? FileManager.default.removeItem(at: input)
            try? FileManager.default.removeItem(at: output)
        }
        let errors = Pipe()
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = [
            "psql", Self.url ?? "", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-f", input.path, "-o",
            output.path,
        ]
        process.standardError = errors
        try process.run()
        let complaints = errors.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else { throw Failure(output: String(decoding: complaints, as: UTF8.self)) }
        return try String(contentsOf: output, encoding: .utf8).split(separator: "\n", omittingEmptySubsequences: true)
            .map(String.init)
    }
}

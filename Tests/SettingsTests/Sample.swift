import Foundation

/// The sample file as a reader sees it: each key, the comment above it, and whether it is commented out
/// (`#key: value`).
struct Sample {
    struct Entry {
        var comment: String
        var isCommentedOut: Bool
    }

    private(set) var entries: [String: Entry] = [:]

    static let path = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../config/roost.yaml")
        .standardizedFileURL.path(percentEncoded: false)

    init() throws {
        let text = try String(contentsOfFile: Self.path, encoding: .utf8)
        var section = ""
        var comment: [Substring] = []
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            let content = line.drop { $0 == " " }
            if content.isEmpty {
                comment = []
            } else if content.hasPrefix("# ") {
                comment.append(content.dropFirst(2))
            } else if let match = content.wholeMatch(of: /(#?)([a-z_]+):(.*)/) {
                if line.first != " " { section = "" }
                if match.output.3.isEmpty {
                    section = match.output.2 + "."
                } else {
                    entries[section + match.output.2] = Entry(
                        comment: comment.joined(separator: " "), isCommentedOut: match.output.1 == "#")
                }
                comment = []
            }
        }
    }
}

extension Sample {
    /// By its looks.
    static let key = "-----BEGIN PRIVATE KEY-----\\nMIGT\\n-----END PRIVATE KEY-----"

    /// What pushes take, all or nothing.
    static let apns = [
        "ROOST_APNS_TOPIC": "com.example.app", "ROOST_APNS_TEAM_ID": "TEAM123456", "ROOST_APNS_KEY_ID": "KEY1234567",
        "ROOST_APNS_PRIVATE_KEY": key,
    ]
}

/// A file that is gone when the closure returns.
@discardableResult
func withFile<Result>(_ text: String, _ body: (String) throws -> Result) throws -> Result {
    let path = FileManager.default.temporaryDirectory.appending(path: "roost-\(UUID().uuidString).yaml")
    try text.write(to: path, atomically: true, encoding: .utf8)
    defer {
        do { try FileManager.default.removeItem(at: path) } catch { print("cannot remove \(path): \(error)") }
    }
    return try body(path.path(percentEncoded: false))
}

import Configuration
import Synchronization

/// The YAML file: which one it is, what it says, and whether all of that is known.
struct SettingsFile {
    let path: String
    let provider: any ConfigProvider

    /// What may stand for "no value" in YAML; an operator may empty a key without deleting it.
    static let blanks: Set<String> = ["", "~", "null"]

    /// Reads `path` and refuses keys that nobody knows: a misspelt key would otherwise be a setting that is silently
    /// not made.
    init(path: String) async throws(ConfigurationError) {
        self.path = path
        // The reader shows its keys to nobody but the closure that says which of them are secret.
        let seen = Mutex<[String]>([])
        let options = SettingsSnapshot.ParsingOptions(
            bytesDecoder: .base64,
            secretsSpecifier: .dynamic { key, _ in
                seen.withLock { $0.append(key) }
                return Setting.all.contains { $0.key == key && $0.isSecret }
            })
        do {
            provider = try await FileProvider<SettingsSnapshot>(parsingOptions: options, filePath: .init(path))
        } catch {
            throw ConfigurationError(message: "\(path) cannot be read: \(Self.oneLine(error)).")
        }
        for key in seen.withLock({ $0.sorted() }) { try check(key) }
    }

    private func check(_ key: String) throws(ConfigurationError) {
        if Setting.all.contains(where: { $0.key == key }) { return }
        if isBlank(key) {
            // A section whose keys are all commented out.
            if Setting.all.contains(where: { $0.key.hasPrefix(key + ".") }) { return }
        }
        let known = Setting.all.map(\.key)
        let advice =
            NearestName.find(key, among: known).map { "did you mean \($0)?" }
            ?? "the keys are " + known.joined(separator: ", ") + "."
        throw ConfigurationError(message: "\(path): there is no key \(key); \(advice)")
    }

    private func isBlank(_ key: String) -> Bool {
        let key = AbsoluteConfigKey(key.split(separator: ".").map(String.init))
        do {
            guard case .string(let text) = try provider.value(forKey: key, type: .string).value?.content else {
                return true
            }
            return Self.blanks.contains(text)
        } catch {
            return false  // A list.
        }
    }

    /// Parsers explain themselves over several lines, and point; errors here are one sentence.
    private static func oneLine(_ error: any Error) -> String {
        let words = "\(error)".split { $0.isWhitespace || $0 == "^" }.joined(separator: " ")
        return String(words.trimmingSuffix { $0 == "." || $0 == ":" })
    }
}

extension String {
    fileprivate func trimmingSuffix(while isTrimmed: (Character) -> Bool) -> Substring {
        var end = endIndex
        while end > startIndex, isTrimmed(self[index(before: end)]) { end = index(before: end) }
        return self[..<end]
    }
}

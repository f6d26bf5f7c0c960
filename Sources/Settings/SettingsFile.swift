import Configuration
import FoundationEssentials
import Synchronization

/// The YAML file: which one it is, what it says, and whether all of that is known.
struct SettingsFile {
    let path: String
    let provider: any ConfigProvider
    private let lines: KeyLines

    /// What may stand for "no value" in YAML; an operator may empty a key without deleting it.
    static let blanks: Set<String> = ["", "~", "null"]

    /// Reads `path` and refuses keys that nobody knows: a misspelt key would otherwise be a setting that is silently
    /// not made.
    init(path: String) async throws(ConfigurationError) {
        self.path = path
        lines = KeyLines(try Self.text(of: path))
        let unreadable = UnreadableFile(path: path, lines: lines)
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
            throw unreadable.error(error)
        }
        var known: Set<String> = []
        for key in seen.withLock({ $0.sorted() }) {
            try check(key)
            // Once below its section and once with dots, which is no mistake to YAML.
            guard known.insert(key).inserted else { throw unreadable.twice(key) }
        }
    }

    /// Where the file sets it.
    func origin(of setting: Setting) -> Origin { .file(path, line: lines[setting.key]) }

    private func check(_ key: String) throws(ConfigurationError) {
        if Setting.all.contains(where: { $0.key == key }) { return }
        if isBlank(key) {
            // A section whose keys are all commented out.
            if Setting.all.contains(where: { $0.key.hasPrefix(key + ".") }) { return }
        }
        throw ConfigurationError(message: "\(Origin.file(path, line: lines[key])): \(UnknownKey(key: key).problem)")
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

    private static func text(of path: String) throws(ConfigurationError) -> String {
        let bytes: Data
        do {
            bytes = try Data(contentsOf: URL(filePath: path))
        } catch {
            throw ConfigurationError(message: "\(path) cannot be read; name a YAML file that this user may read.")
        }
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw ConfigurationError(message: "\(path) is not UTF-8 text; write it as that.")
        }
        return text
    }
}

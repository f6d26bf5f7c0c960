import Configuration

/// A YAML snapshot that takes a file of nothing but comments for what it is: no settings. swift-configuration's own
/// refuses one, and a sample with every line commented out is just that.
struct SettingsSnapshot: FileConfigSnapshot {
    typealias ParsingOptions = YAMLSnapshot.ParsingOptions

    private let content: any ConfigSnapshot & CustomStringConvertible & CustomDebugStringConvertible

    init(data: RawSpan, providerName: String, parsingOptions: ParsingOptions) throws {
        if Self.isEmpty(data) {
            content = EmptySnapshot(providerName: providerName)
        } else {
            content = try YAMLSnapshot(data: data, providerName: providerName, parsingOptions: parsingOptions)
        }
    }

    var providerName: String { content.providerName }
    var description: String { content.description }
    var debugDescription: String { content.debugDescription }

    func value(forKey key: AbsoluteConfigKey, type: ConfigType) throws -> LookupResult {
        try content.value(forKey: key, type: type)
    }

    private static func isEmpty(_ data: RawSpan) -> Bool {
        let text = data.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
        return text.split(whereSeparator: \.isNewline).allSatisfy { line in
            let first = line.first { !$0.isWhitespace }
            return first == nil || first == "#" || line == "---"
        }
    }
}

/// What a file without a setting says.
private struct EmptySnapshot: ConfigSnapshot, CustomStringConvertible, CustomDebugStringConvertible {
    let providerName: String
    var description: String { "\(providerName)[0 values]" }
    var debugDescription: String { description }

    func value(forKey key: AbsoluteConfigKey, type: ConfigType) throws -> LookupResult {
        LookupResult(encodedKey: key.components.joined(separator: "."), value: nil)
    }
}

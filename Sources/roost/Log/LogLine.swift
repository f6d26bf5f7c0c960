import Logging
import Wire

/// One event of the log, always on one line.
struct LogLine {
    private let time: String
    private let level: Logger.Level
    private let message: String
    /// The module that logged it.
    private let source: String
    private let fields: [(key: String, value: Logger.MetadataValue)]

    /// - Parameter time: milliseconds since 1970.
    init(time: Int64, _ level: Logger.Level, _ message: String, _ source: String, _ metadata: Logger.Metadata) {
        self.time = CivilTime(millisecondsSince1970: Int(time)).text
        self.level = level
        self.message = message
        self.source = source
        fields = metadata.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
    }

    init(_ rest: RepeatLimit.Rest, at time: Int64) {
        self.init(
            time: time, rest.level, "and \(rest.count) more within a second: \(rest.message)", "log",
            ["untold": .stringConvertible(rest.count)])
    }

    /// `2026-01-31T12:00:00.000Z info [Gateway] connection ended code=1000 by=peer`
    var text: String { "\(time) \(level) [\(source)] \(body)\n" }

    /// The message without time, level and source: `connection ended code=1000 by=peer`
    var body: String {
        var out = Self.onOneLine(message)
        for (key, value) in fields { out += " \(key)=\(Self.quotedIfNeeded("\(value)"))" }
        return out
    }

    /// One object in which the metadata are fields like the others; numbers stay numbers.
    var json: String {
        var out = "{\"time\":\"\(time)\",\"level\":\"\(level)\",\"message\":\(JSONString.quoted(message))"
        out += ",\"source\":\(JSONString.quoted(source))"
        for (key, value) in fields { out += ",\(JSONString.quoted(key)):\(Self.jsonValue(value))" }
        return out + "}\n"
    }

    private static func jsonValue(_ value: Logger.MetadataValue) -> String {
        switch value {
        case .string(let text): JSONString.quoted(text)
        case .stringConvertible(let number as any BinaryInteger): "\(number)"
        case .stringConvertible(let other): JSONString.quoted("\(other)")
        case .array(let values): "[" + values.map(jsonValue).joined(separator: ",") + "]"
        case .dictionary(let members):
            "{"
                + members.sorted { $0.key < $1.key }.map { "\(JSONString.quoted($0.key)):\(jsonValue($0.value))" }
                .joined(
                    separator: ",")
                + "}"
        }
    }

    /// Values that cannot be mistaken for two fields stay unquoted.
    private static func quotedIfNeeded(_ text: String) -> String {
        let isPlain = !text.isEmpty && text.utf8.allSatisfy { $0 > 0x20 && $0 != 0x7F && $0 != 0x22 && $0 != 0x3D }
        return isPlain ? text : JSONString.quoted(text)
    }

    /// Line breaks in messages of Postgres or a peer must not start another line, and control characters must not reach
    /// a terminal.
    private static func onOneLine(_ text: String) -> String {
        guard text.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }) else { return text }
        return text.unicodeScalars.map { $0.properties.generalCategory == .control ? " " : String($0) }.joined()
    }
}

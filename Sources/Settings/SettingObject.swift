import Yams

/// A setting whose value is JSON, written in a file as YAML keys, values and lists.
struct SettingObject {
    let key: String
    let path: String

    /// Spellings of "no value" in YAML.
    private static let blanks: Set<String> = ["", "~", "null"]

    /// Whether the setting with this key takes JSON.
    static func isOne(_ key: String) -> Bool { Setting.all.contains { $0.key == key && $0.kind.isStructured } }

    /// The JSON text of a node. An unquoted scalar is a number, a Boolean or null if it has JSON's syntax for that.
    func json(of node: Node) throws(ConfigurationError) -> String {
        switch node {
        case .mapping(let mapping):
            var members: [String] = []
            for (name, value) in mapping {
                guard let name = name.scalar else {
                    throw ConfigurationError(message: "\(path): a key in \(key) is no text; write it as one.")
                }
                members.append(Self.jsonString(name.string) + ":" + (try json(of: value)))
            }
            return "{" + members.joined(separator: ",") + "}"
        case .sequence(let sequence):
            var elements: [String] = []
            for element in sequence { elements.append(try json(of: element)) }
            return "[" + elements.joined(separator: ",") + "]"
        case .scalar(let scalar):
            guard scalar.style == .plain || scalar.style == .any else { return Self.jsonString(scalar.string) }
            if Self.blanks.contains(scalar.string) { return "null" }
            return Self.isLiteral(scalar.string) ? scalar.string : Self.jsonString(scalar.string)
        case .alias: preconditionFailure("the parser puts what an alias stands for in its place")
        }
    }

    /// Whether the text is a number or a Boolean in JSON (RFC 8259, section 6).
    private static func isLiteral(_ text: String) -> Bool {
        ["true", "false"].contains(text)
            || text.wholeMatch(of: /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/) != nil
    }

    /// RFC 8259, section 7.
    private static func jsonString(_ text: String) -> String {
        var out = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": out += "\\\""
            case "\\": out += "\\\\"
            case ..<" ":
                let digits = String(scalar.value, radix: 16)
                out += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: out.unicodeScalars.append(scalar)
            }
        }
        return out + "\""
    }
}

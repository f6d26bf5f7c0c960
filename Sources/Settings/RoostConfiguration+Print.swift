extension RoostConfiguration {
    /// The effective values as YAML, each with who set it; secrets are masked.
    package func printed() -> String {
        var lines: [(text: String, comment: String?)] = []
        var section: Substring?
        for value in values {
            if let next = value.setting.section, next != section { lines.append(("\(next):", nil)) }
            section = value.setting.section
            lines.append(value.line)
        }
        let width = lines.map(\.text.count).max() ?? 0
        return lines.map { line in
            guard let comment = line.comment else { return line.text + "\n" }
            return line.text + String(repeating: " ", count: width - line.text.count) + "  # \(comment)\n"
        }.joined()
    }
}

extension Setting {
    /// `http` of `http.port`; nil for a key at the top.
    fileprivate var section: Substring? {
        key.firstIndex(of: ".").map { key[..<$0] }
    }
}

extension EffectiveValue {
    fileprivate var line: (text: String, comment: String?) {
        let name = setting.key.split(separator: ".").last ?? ""
        let indent = setting.section == nil ? "" : "  "
        return ("\(indent)\(name): \(yaml)", value == nil ? "not set" : "\(origin)")
    }

    private var yaml: String {
        guard case .text = value else { return printed }
        let isPlain = printed.allSatisfy { $0.isLetter || $0.isNumber || "-_./:@".contains($0) } && !printed.isEmpty
        return isPlain ? printed : "\"" + printed.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"") + "\""
    }
}

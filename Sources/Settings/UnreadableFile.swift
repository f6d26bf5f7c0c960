/// Why a YAML file cannot be read, in one sentence that names the line.
///
/// The parser explains itself over several lines and quotes the file, in which secrets may stand; of what it says, the
/// place and the reason are kept.
struct UnreadableFile {
    let path: String
    let lines: KeyLines

    func error(_ reason: any Error) -> ConfigurationError {
        let said = "\(reason)"
        if said.contains("duplicated key"), let key = lines.repeated { return twice(key) }
        if let tab = lines.tab {
            return ConfigurationError(
                message: "\(path):\(tab): the line is indented with a tab; YAML takes spaces alone.")
        }
        if said.contains("not a mapping") {
            return ConfigurationError(
                message:
                    "\(path) has no keys with values, such as `loops: 2`; config/roost.yaml shows how it is written.")
        }
        if let key = Self.key(in: said), let line = lines[key] {
            return ConfigurationError(
                message: "\(path):\(line): \(key) is a list of lists or of keys, expected one value.")
        }
        guard let place = Place(said) else {
            return ConfigurationError(message: "\(path) cannot be read: \(Self.firstLine(said)).")
        }
        return ConfigurationError(message: "\(path):\(place.line): this is not YAML: \(place.problem).")
    }

    /// A key that is set in two places.
    func twice(_ key: String) -> ConfigurationError {
        let places = lines.all(key)
        guard places.count > 1 else {
            return ConfigurationError(
                message: "\(path): \(key) is set twice, as `\(key):` and below its section; keep one of them.")
        }
        let list = places.map(String.init).joined(separator: " and ")
        return ConfigurationError(
            message: "\(path):\(places[1]): \(key) is set twice, in the lines \(list); keep one of them.")
    }

    /// "Unexpected non-scalar value in array at limits.connections at index: 0."
    private static func key(in said: String) -> String? {
        guard said.contains("in array at") else { return nil }
        return said.firstMatch(of: /in array at ([^ ]+)/).map { String($0.output.1) }
    }

    private static func firstLine(_ said: String) -> String {
        Quotation.of(String(said.split(whereSeparator: \.isNewline).first ?? "")).trimming
    }

    /// What the parser says first: `LINE:COLUMN: error: scanner: [CONTEXT in line 2, column 1⏎]PROBLEM:⏎` and a quotation.
    private struct Place {
        let line: Int
        let problem: String

        init?(_ said: String) {
            let parts = said.split(whereSeparator: \.isNewline)
            guard let head = parts.first?.wholeMatch(of: /(\d+):\d+: error: [a-z]+: (.*)/),
                let line = Int(head.output.1)
            else { return nil }
            let isContext = head.output.2.contains(/.+ in line \d+, column \d+$/)
            guard let problem = isContext ? parts.dropFirst().first : head.output.2 else { return nil }
            self.line = line
            self.problem = String(problem).trimming
        }
    }
}

extension String {
    /// Without the stop at its end.
    fileprivate var trimming: String {
        var text = self[...]
        while let last = text.last, last == "." || last == ":" || last.isWhitespace { text.removeLast() }
        return String(text)
    }
}

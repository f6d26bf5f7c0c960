import FoundationEssentials
import Glibc
import Yams

/// The YAML file: its values, with their lines.
struct SettingsFile {
    let path: String
    private let text: String

    /// Spellings of "no value" in YAML; an operator may empty a key without deleting it.
    private static let blanks: Set<String> = ["", "~", "null"]

    /// A key with its levels joined by dots, and its value.
    private struct Value {
        let key: String
        /// Counted from 1.
        let line: Int
        let content: Layer.Content

        var isBlank: Bool {
            if case .text(let text) = content { SettingsFile.blanks.contains(text) } else { false }
        }
    }

    /// Reads the file's text; its values are parsed later.
    init(path: String) throws(ConfigurationError) {
        self.path = path
        let bytes: Data
        do {
            bytes = try Data(contentsOf: URL(filePath: path))
        } catch {
            throw ConfigurationError(message: "\(path) cannot be read; name a YAML file that this user may read.")
        }
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw ConfigurationError(message: "\(path) is not UTF-8 text; write it as that.")
        }
        self.text = text
    }

    /// The values in the file. Unknown keys are refused: a misspelled key would otherwise be ignored silently.
    func readLayer() throws(ConfigurationError) -> Layer {
        var entries: [String: Layer.Entry] = [:]
        var seen: Set<String> = []
        let values = try parseValues()
        for value in values.sorted(by: { ($0.key, $0.line) < ($1.key, $1.line) }) {
            try checkKey(value)
            // A key below its section and again with dots is no duplicate to YAML.
            guard seen.insert(value.key).inserted else {
                throw setTwiceError(value.key, values.filter { $0.key == value.key }.map(\.line).sorted())
            }
            if value.isBlank { continue }
            entries[value.key] = Layer.Entry(content: value.content, origin: .file(path, line: value.line))
        }
        return Layer(entries)
    }

    private func checkKey(_ value: Value) throws(ConfigurationError) {
        if Setting.all.contains(where: { $0.key == value.key }) { return }
        // A section whose keys are all commented out.
        if value.isBlank, Setting.all.contains(where: { $0.key.hasPrefix(value.key + ".") }) { return }
        throw ConfigurationError(
            message: "\(Origin.file(path, line: value.line)): \(UnknownKey(key: value.key).problem)")
    }

    // MARK: YAML

    private func parseValues() throws(ConfigurationError) -> [Value] {
        // The parser finds no mapping in a file with nothing but comments; such a file has no settings.
        if Self.isComment(text) { return [] }
        let root: Node?
        do {
            root = try Parser(yaml: text).singleRoot()
        } catch {
            throw unreadableError(error)
        }
        guard let mapping = root?.mapping else {
            throw ConfigurationError(
                message:
                    "\(path) has no keys with values, such as `loops: 2`; config/roost.yaml shows how it is written.")
        }
        return try parseValues(of: mapping, below: "")
    }

    private func parseValues(of mapping: Node.Mapping, below section: String) throws(ConfigurationError) -> [Value] {
        var values: [Value] = []
        for (name, node) in mapping {
            guard let name = name.scalar else {
                throw ConfigurationError(
                    message:
                        "\(path) cannot be read: YAML key is not convertible to string\(section.isEmpty ? "" : ": ")"
                        + "\(section.dropLast()).")
            }
            let key = section + name.string
            let line = name.mark?.line ?? 1
            switch node {
            case .mapping where SettingObject.isOne(key), .sequence where SettingObject.isOne(key):
                let object = try SettingObject(key: key, path: path).json(of: node)
                values.append(Value(key: key, line: line, content: .text(object)))
            case .mapping(let mapping):
                values += try self.parseValues(of: mapping, below: key + ".")
            case .sequence(let items):
                guard items.allSatisfy({ $0.scalar != nil }) else {
                    throw ConfigurationError(
                        message: "\(path):\(line): \(key) is a list of lists or of keys, expected one value.")
                }
                values.append(Value(key: key, line: line, content: .list))
            case .scalar(let scalar):
                values.append(Value(key: key, line: line, content: .text(scalar.string)))
            case .alias:
                preconditionFailure("the parser puts what an alias stands for in its place")
            }
        }
        return values
    }

    private static func isComment(_ text: String) -> Bool {
        text.split(whereSeparator: \.isNewline).allSatisfy { line in
            let first = line.first { !$0.isWhitespace }
            return first == nil || first == "#" || line == "---"
        }
    }

    // MARK: Errors

    /// The parser's errors span several lines and quote the file, which may contain secrets; only the place and the
    /// reason are kept.
    private func unreadableError(_ error: any Error) -> ConfigurationError {
        switch error as? YamlError {
        case .duplicatedKeysInMapping(let names, let context)?:
            if let name = names.first, let error = setTwiceError(name, at: context.mark) { return error }
        case .scanner(_, let problem, let mark, _)?, .parser(_, let problem, let mark, _)?,
            .composer(_, let problem, let mark, _)?:
            return notYAML(mark.line, problem)
        case .reader(let problem, let offset?, _, _)?:
            return notYAML(1 + text.prefix(offset).count(where: \.isNewline), problem)
        default: break
        }
        let said = "\(error)".split(whereSeparator: \.isNewline).first ?? ""
        return ConfigurationError(
            message: "\(path) cannot be read: \(Self.trimmedEnd(Quotation.excerpt(String(said)))).")
    }

    private func notYAML(_ line: Int, _ problem: String) -> ConfigurationError {
        let place = "\(path):\(line)"
        if lines.indices.contains(line - 1), lines[line - 1].first(where: { $0 != " " }) == "\t" {
            return ConfigurationError(message: "\(place): the line is indented with a tab; YAML takes spaces alone.")
        }
        return ConfigurationError(message: "\(place): this is not YAML: \(Self.trimmedEnd(problem)).")
    }

    private func setTwiceError(_ key: String, _ places: [Int]) -> ConfigurationError {
        guard places.count > 1, places[0] != places[1] else {
            return ConfigurationError(
                message: "\(path): \(key) is set twice, as `\(key):` and below its section; keep one of them.")
        }
        let list = places.map(String.init).joined(separator: " and ")
        return ConfigurationError(
            message: "\(path):\(places[1]): \(key) is set twice, in the lines \(list); keep one of them.")
    }

    /// For a duplicate key in a section the parser reports only its last level and its first place. The section is
    /// derived from the text before that place; the other places are the lines below with the same indentation and key.
    ///
    /// - Returns: nil if the section is not written in lines, as in `{a: 1, a: 2}`.
    private func setTwiceError(_ name: String, at first: Mark) -> ConfigurationError? {
        guard lines.indices.contains(first.line - 1) else { return nil }
        let indent = first.column - 1
        let before = lines[..<(first.line - 1)] + [lines[first.line - 1].prefix(indent) + "'\(name)':"]
        let above: [Value]
        do { above = try SettingsFile(path: path, text: before.joined(separator: "\n")).parseValues() } catch {
            return error.message.contains("set twice") ? error : nil
        }
        guard let key = above.last(where: { $0.line == first.line })?.key else { return nil }
        var places = [first.line]
        for (index, line) in lines.enumerated().dropFirst(first.line) {
            let content = line.drop { $0 == " " }
            guard let character = content.first, character != "#" else { continue }
            let depth = line.count - content.count
            if depth < indent { break }
            if depth == indent, Self.lineBegins(content, with: name) { places.append(index + 1) }
        }
        return places.count > 1 ? setTwiceError(key, places) : nil
    }

    private static func lineBegins(_ content: Substring, with key: String) -> Bool {
        [key, "\"\(key)\"", "'\(key)'"].contains { spelling in
            content.hasPrefix(spelling) && content.dropFirst(spelling.count).first { $0 != " " } == ":"
        }
    }

    private init(path: String, text: String) {
        self.path = path
        self.text = text
    }

    private var lines: [Substring] { text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline) }

    /// Removes punctuation from the end.
    private static func trimmedEnd(_ text: String) -> String {
        let end = text.lastIndex { $0 != "." && $0 != ":" && !$0.isWhitespace }
        return end.map { String(text[...$0]) } ?? ""
    }
}

/// Finds the configuration file, and checks that it can be read.
enum SettingsPath {
    /// No configuration is longer.
    private static let mostBytes = 1_048_576

    /// - Parameters:
    ///   - flag: the path named by `--config`. Nil: the path of `variable`, or else the first existing one of `files`.
    ///   - variable: the path named by `ROOST_CONFIG`.
    /// - Returns: nil if no path was named and none of `files` exists.
    static func find(
        flag: String?, variable: String?, files: [String]
    ) throws(ConfigurationError) -> String? {
        let named = flag.map { ($0, "--config") } ?? variable.map { ($0, Setting.fileVariable) }
        guard let path = named?.0 ?? files.first(where: FileManager.default.fileExists) else { return nil }
        var status = stat()
        guard stat(path, &status) == 0 else {
            throw ConfigurationError(
                message: "\(named?.1 ?? "the standard place") names \(path), which \(openFailure(errno)).")
        }
        try checkFile(path, status)
        return path
    }

    private static func checkFile(_ path: String, _ status: stat) throws(ConfigurationError) {
        switch status.st_mode & S_IFMT {
        case S_IFDIR: throw ConfigurationError(message: "\(path) is a folder; name a YAML file.")
        case S_IFREG: break
        default: throw ConfigurationError(message: "\(path) is no file that can be read to its end; name a YAML file.")
        }
        guard status.st_size <= mostBytes else {
            throw ConfigurationError(message: "\(path) is longer than 1 MiB; name a YAML file.")
        }
        guard access(path, R_OK) == 0 else {
            throw ConfigurationError(message: "\(path) may not be read by this user; change its owner or its mode.")
        }
    }

    private static func openFailure(_ number: Int32) -> String {
        switch number {
        case ENOENT: "does not exist"
        case EACCES: "is in a folder that this user may not enter"
        default: "cannot be opened (\(String(cString: strerror(number))))"
        }
    }
}

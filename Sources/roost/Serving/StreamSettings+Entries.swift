import Settings
import Streams
import Wire

/// The entries of `streams.on_close` and `streams.bounds`.
extension StreamSettings {
    /// - Throws: `RunFailure` if an entry is invalid.
    func closeRules() throws(RunFailure) -> [CloseRule] {
        guard let onClose else { return [] }
        guard onClose.first(where: { !$0.isWhitespace }) == "[" else {
            return [CloseRule(pattern: nil, statement: onClose)]
        }
        var rules: [CloseRule] = []
        for entry in try SettingEntry.parseEntries(of: "streams.on_close", onClose) {
            try entry.expectKeys(only: ["stream", "statement", "when", "role"])
            let pattern = try entry.requiredText("stream")
            let statement = try entry.requiredText("statement")
            guard statement.contains("$1") else { throw entry.entryFailure("has a statement that does not take $1") }
            let role = try entry.optionalText("role")
            let reasons = try Self.closeReasons(of: entry)
            guard role != nil || !reasons.contains(.aborted) else {
                throw entry.entryFailure(
                    "is for aborted, which nobody asks for: name the role that its statement runs with")
            }
            rules.append(
                CloseRule(pattern: pattern, statement: statement, reasons: reasons, role: role.map { Name($0) }))
        }
        return rules
    }

    private static func closeReasons(of entry: SettingEntry) throws(RunFailure) -> Set<StreamEnding.Reason> {
        guard let words = try entry.words("when") else { return [.complete] }
        var reasons: Set<StreamEnding.Reason> = []
        for word in words {
            guard let reason = StreamEnding.Reason(rawValue: word) else {
                throw entry.entryFailure("has the word \(word) in when, expected complete, cancelled or aborted")
            }
            reasons.insert(reason)
        }
        return reasons
    }

    /// - Throws: `RunFailure` if an entry is invalid.
    func boundRules() throws(RunFailure) -> [BoundRule] {
        guard let bounds else { return [] }
        var rules: [BoundRule] = []
        for entry in try SettingEntry.parseEntries(of: "streams.bounds", bounds) {
            try entry.expectKeys(only: ["stream", "bytes", "keep", "seconds"])
            var bound = StreamBound(bytes: try entry.requiredInteger("bytes", within: 1024...268_435_456))
            let keep = try entry.optionalText("keep") ?? "all"
            guard ["all", "newest"].contains(keep) else {
                throw entry.entryFailure("has keep: \(keep), expected all or newest")
            }
            bound.keepsNewest = keep == "newest"
            if entry.hasValue("seconds") {
                guard bound.keepsNewest else { throw entry.entryFailure("has seconds, which go with keep: newest") }
                bound.age = Int64(try entry.requiredInteger("seconds", within: 1...86_400)) * 1000
            }
            rules.append(BoundRule(pattern: try entry.requiredText("stream"), bound))
        }
        return rules
    }
}

/// One entry of a setting that is a list.
private struct SettingEntry {
    private let setting: String
    /// Counted from 1.
    private let number: Int
    private let json: JSON

    /// - Throws: `RunFailure` if the text is not a list of objects.
    static func parseEntries(of setting: String, _ text: String) throws(RunFailure) -> [SettingEntry] {
        let json: JSON
        do { json = try JSON(parsing: Array(text.utf8)) } catch {
            throw RunFailure(
                "\(setting) is not valid JSON; write it as a list of YAML in the file, or as JSON in one text.",
                .configuration)
        }
        var entries: [SettingEntry] = []
        for (place, element) in json.elements.enumerated() {
            let entry = SettingEntry(setting: setting, number: place + 1, json: element)
            guard element.kind == .object else { throw entry.entryFailure("has no keys and values") }
            entries.append(entry)
        }
        guard !entries.isEmpty else {
            throw RunFailure("\(setting) is a list without entries; leave it out, or name some.", .configuration)
        }
        return entries
    }

    func entryFailure(_ problem: String) -> RunFailure {
        RunFailure("\(setting): entry \(number) \(problem).", .configuration)
    }

    func expectKeys(only keys: [String]) throws(RunFailure) {
        var unknown: String?
        json.forEachMember { member in
            if !keys.contains(where: { member.isNamed($0) }) { unknown = unknown ?? member.key }
        }
        if let unknown {
            throw entryFailure("has the key \(unknown), which is none of \(keys.joined(separator: ", "))")
        }
    }

    func hasValue(_ key: String) -> Bool { json[key].map { $0.kind != .null } ?? false }

    func requiredText(_ key: String) throws(RunFailure) -> String {
        guard let text = try optionalText(key) else { throw entryFailure("has no \(key)") }
        return text
    }

    func optionalText(_ key: String) throws(RunFailure) -> String? {
        guard let value = json[key], value.kind != .null else { return nil }
        guard let text = value.string, !text.isEmpty else { throw entryFailure("has a \(key) that is no text") }
        return text
    }

    /// A list of words, or one text with words separated by commas.
    func words(_ key: String) throws(RunFailure) -> [String]? {
        guard let value = json[key], value.kind != .null else { return nil }
        let words =
            value.kind == .array
            ? value.elements.map { $0.string ?? "" }
            : (value.string ?? "").split { $0 == "," || $0.isWhitespace }.map(String.init)
        guard !words.isEmpty, !words.contains("") else { throw entryFailure("has a \(key) that is no list of words") }
        return words
    }

    func requiredInteger(_ key: String, within range: ClosedRange<Int>) throws(RunFailure) -> Int {
        guard let number = json[key]?.int, range.contains(number) else {
            throw entryFailure("needs \(key), a whole number from \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }
}

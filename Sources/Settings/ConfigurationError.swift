/// An error in the configuration: one sentence that names the place, the key and the remedy.
///
/// The command line then exits with status 78 (`EX_CONFIG`).
package struct ConfigurationError: Error, Sendable, Equatable, CustomStringConvertible {
    package let message: String

    package init(message: String) {
        self.message = message
    }

    package var description: String { message }
}

/// Quotes user input in an error: on one line, and shortened.
enum Quotation {
    private static let longest = 80

    static func excerpt(_ text: String) -> String {
        var out = ""
        for scalar in text.unicodeScalars.prefix(longest) {
            switch scalar {
            case "\n": out += "\\n"
            case "\t": out += "\\t"
            case _ where scalar.properties.generalCategory == .control: out += "\u{FFFD}"
            default: out.unicodeScalars.append(scalar)
            }
        }
        return text.unicodeScalars.count > longest ? out + "…" : out
    }
}

/// A key in the file that is no setting, with suggestions.
struct UnknownKey {
    let key: String
    /// All existing settings.
    var known = Setting.all.map(\.key)

    /// The error's sentence after the place.
    var problem: String {
        if let setting = Setting.all.first(where: { key.hasPrefix($0.key + ".") }) {
            return "\(setting.key) takes a value and no keys below it, expected \(setting.kind.expectation)."
        }
        let inside = keys(of: key)
        if !inside.isEmpty {
            return "\(key) is a section and takes no value of its own; its keys are \(inside.joined(separator: ", "))."
        }
        return "there is no key \(Quotation.excerpt(key)); \(advice)"
    }

    private var advice: String {
        if let nearest = NearestName.find(key, among: known) { return "did you mean \(nearest)?" }
        let namesakes = known.filter { Self.leaf($0) == Self.leaf(key) }
        if !namesakes.isEmpty { return "did you mean \(namesakes.joined(separator: " or "))?" }
        if let section = key.split(separator: ".").first.map(String.init), !keys(of: section).isEmpty {
            return "the keys of \(section) are \(keys(of: section).joined(separator: ", "))."
        }
        return "the sections are \(sections.joined(separator: ", "))."
    }

    private func keys(of section: String) -> [String] {
        known.filter { $0.hasPrefix(section + ".") }.map { String($0.dropFirst(section.count + 1)) }
    }

    /// The sections, and the keys at the top level.
    private var sections: [String] {
        var names: [String] = []
        for key in known {
            let name = String(key.prefix { $0 != "." })
            if names.last != name { names.append(name) }
        }
        return names
    }

    private static func leaf(_ key: String) -> Substring { key.split(separator: ".").last ?? "" }
}

/// Finds the name that was probably meant.
enum NearestName {
    /// The closest of `names`; nil if even that one is too far away for a typing error.
    static func find(_ name: String, among names: [String]) -> String? {
        let nearest = names.map { (name: $0, distance: distance(name, $0)) }.min { $0.distance < $1.distance }
        guard let nearest, nearest.distance <= max(2, name.count / 3) else { return nil }
        return nearest.name
    }

    /// The fewest insertions, deletions and replacements that turn one into the other (Levenshtein), a row at a time.
    static func distance(_ left: String, _ right: String) -> Int {
        let left = Array(left.utf8)
        let right = Array(right.utf8)
        var row = Array(0...right.count)
        for (i, a) in left.enumerated() {
            var diagonal = row[0]
            row[0] = i + 1
            for (j, b) in right.enumerated() {
                let replaced = diagonal + (a == b ? 0 : 1)
                diagonal = row[j + 1]
                row[j + 1] = min(replaced, row[j] + 1, row[j + 1] + 1)
            }
        }
        return row[right.count]
    }
}

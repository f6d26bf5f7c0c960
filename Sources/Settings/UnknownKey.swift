/// A key of the file that is no setting, and what was probably meant.
struct UnknownKey {
    let key: String
    /// The settings there are.
    var known = Setting.all.map(\.key)

    /// The rest of the sentence that names the place.
    var problem: String {
        if let setting = Setting.all.first(where: { key.hasPrefix($0.key + ".") }) {
            return "\(setting.key) takes a value and no keys below it, expected \(setting.kind.expectation)."
        }
        let inside = keys(of: key)
        if !inside.isEmpty {
            return "\(key) is a section and takes no value of its own; its keys are \(inside.joined(separator: ", "))."
        }
        return "there is no key \(Quotation.of(key)); \(advice)"
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

    /// And the keys that stand at the top by themselves.
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

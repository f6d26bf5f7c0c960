extension JSON {
    /// Whether two values are one to whoever parses them: the order of an object's members and white space do not count,
    /// and of a repeated key the last one does. Numbers are compared as they are written.
    package func isEqual(to other: JSON) -> Bool {
        if bytes.elementsEqual(other.bytes) { return true }
        guard kind == other.kind else { return false }
        switch kind {
        case .string: return string?.utf8.elementsEqual(other.string?.utf8 ?? "".utf8) ?? false
        case .array:
            let (mine, others) = (elements, other.elements)
            return mine.count == others.count && zip(mine, others).allSatisfy { $0.isEqual(to: $1) }
        case .object:
            let (mine, others) = (members, other.members)
            return mine.count == others.count
                && mine.allSatisfy { key, value in others[key]?.isEqual(to: value) ?? false }
        case .number, .bool, .null: return false
        }
    }

    /// By the keys' bytes.
    private var members: [[UInt8]: JSON] {
        var all: [[UInt8]: JSON] = [:]
        forEachMember { all[Array($0.key.utf8)] = $0.value }
        return all
    }
}

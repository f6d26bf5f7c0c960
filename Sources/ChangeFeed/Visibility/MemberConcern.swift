import Wire

/// The kept answers that changes of members tables may have made wrong, by scope value and user.
package struct MemberConcern {
    /// True if nothing narrower is known.
    package private(set) var isEverybody = false
    /// Scope values that lose all answers.
    package private(set) var values: Set<[UInt8]> = []
    /// Users that lose their answers about all values, by the hash of their key: two with the same hash go together.
    package private(set) var users: Set<Int> = []
    /// Users that lose their answers about one value.
    package private(set) var pairs: [[UInt8]: Set<Int>] = [:]

    package init(of changes: [MemberChange], _ scope: Scope) {
        for change in changes where scope.members.contains(change.table) && !isEverybody {
            if !addChange(change, scope.reads[change.table]) { isEverybody = true }
        }
    }

    package var isNobody: Bool { !isEverybody && values.isEmpty && users.isEmpty && pairs.isEmpty }

    /// - Returns: true if it is known whom the change concerns.
    private mutating func addChange(_ change: MemberChange, _ reads: MemberReads?) -> Bool {
        guard case .row(_, let old, let new) = change, old != nil || new != nil, let reads else { return false }
        if let old, let new {
            switch Self.differs(old, new, in: reads.columns) {
            case false?: return true
            case true?: break
            case nil: return false
            }
        }
        for access in reads.accesses {
            for version in [old, new].compactMap({ $0 }) where !addVersion(version, access) { return false }
        }
        return true
    }

    private mutating func addVersion(_ version: [UInt8], _ access: MemberReads.Access) -> Bool {
        let row = JSON(trusted: version[...])
        var value: [UInt8]?
        var user: Int?
        if let column = access.value {
            guard let found = row[column.text] else { return false }
            // Nothing equals null.
            if found.isNull { return true }
            value = Array(found.bytes)
        }
        if let column = access.user {
            guard let found = row[column.text] else { return false }
            if found.isNull { return true }
            user = (found.string ?? String(decoding: found.bytes, as: UTF8.self)).hashValue
        }
        switch (value, user) {
        case (let value?, let user?): pairs[value, default: []].insert(user)
        case (let value?, nil): values.insert(value)
        case (nil, let user?): users.insert(user)
        case (nil, nil): return false
        }
        return true
    }

    /// True if two versions of a row differ in the columns that are read; nil if they lack some of these.
    private static func differs(_ old: [UInt8], _ new: [UInt8], in columns: Set<Name>?) -> Bool? {
        guard let columns else { return true }
        let (old, new) = (JSON(trusted: old[...]), JSON(trusted: new[...]))
        for column in columns {
            guard let before = old[column.text], let after = new[column.text] else { return nil }
            if !before.bytes.elementsEqual(after.bytes) { return true }
        }
        return false
    }
}

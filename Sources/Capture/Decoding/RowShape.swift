/// A table by its latest description in the stream. Another description is another object, even if nothing differs.
package final class CapturedRelation: Sendable {
    package let description: RelationDescription

    package init(_ description: RelationDescription) { self.description = description }
}

/// The properties shared by rows that one statement stores.
package struct RowShape: Hashable {
    /// The versions of a row that are present, and their columns by place in the relation's description.
    package struct Versions: Hashable {
        /// Nil if there is no such version.
        package var new: [Int]?
        package var old: [Int]?
        /// Columns of the new version that an UPDATE did not touch, so that Postgres did not read them.
        package var unchanged: [Int] = []
    }

    package enum Size: Hashable {
        /// Rows whose JSON cannot exceed the limit.
        case small
        /// Rows whose JSON has to be measured.
        case large
        /// Rows whose JSON exceeds the limit; their large values were left out already.
        case huge
    }

    package let relation: CapturedRelation
    package let versions: Versions
    package let size: Size

    package init(relation: CapturedRelation, versions: Versions, size: Size) {
        self.relation = relation
        self.versions = versions
        self.size = size
    }

    package static func == (one: RowShape, other: RowShape) -> Bool {
        one.relation === other.relation && one.versions == other.versions && one.size == other.size
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(ObjectIdentifier(relation))
        hasher.combine(versions)
        hasher.combine(size)
    }
}

extension RowShape {
    /// From this many bytes of text on, JSON may take more than the 1 MiB that the outbox keeps of a row: a control
    /// character is one byte of text and six of JSON.
    static let leastLarge = 170_000
    /// From this many bytes on, JSON certainly exceeds the limit and is not even built.
    static let leastHuge = 8_388_608
    /// The longest JSON of a value that a reduced row keeps, as with triggers (roost.reduced). The JSON of a value is
    /// never shorter than its text.
    static let longestKept = 64

    /// Determines the shape of a row, and which of its values are stored.
    static func classifyRow(
        _ relation: CapturedRelation, new: PgoutputMessage.Tuple?, old: PgoutputMessage.OldTuple?
    ) -> RowShape {
        let columns = relation.description.columns
        let bytes = max(textBytes(new ?? []), textBytes(old?.tuple ?? []))
        var size: Size = bytes >= leastHuge ? .huge : bytes >= leastLarge ? .large : .small
        var versions = Versions()
        if let new {
            // If the table's identity is FULL, the old version has the unchanged values.
            let isThere = { (place: Int) in
                guard case .unchanged = new[place] else { return true }
                guard let old, old.isWhole, place < old.tuple.count else { return false }
                if case .unchanged = old.tuple[place] { return false }
                return true
            }
            let places = new.indices.filter { !isLeftOut(new[$0], size) }
            versions.new = places
            versions.unchanged = places.filter { !isThere($0) }
            // Their size is unknown, but they are large enough to be stored in the TOAST table.
            if !versions.unchanged.isEmpty, size == .small { size = .large }
        }
        if let old {
            versions.old = old.tuple.indices.filter { place in
                (old.isWhole || columns[place].isIdentity) && !isLeftOut(old.tuple[place], size)
            }
        }
        return RowShape(relation: relation, versions: versions, size: size)
    }

    private static func isLeftOut(_ value: PgoutputMessage.Value, _ size: Size) -> Bool {
        guard size == .huge else { return false }
        switch value {
        case .null: return false
        case .unchanged: return true
        case .text(let text): return text.count > longestKept
        }
    }

    private static func textBytes(_ tuple: PgoutputMessage.Tuple) -> Int {
        tuple.reduce(0) { sum, value in if case .text(let text) = value { sum + text.count } else { sum } }
    }
}

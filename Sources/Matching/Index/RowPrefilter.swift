/// Which rows can concern some groups, told by little: their table, and a text that is in them.
///
/// A necessary condition, cheap enough for a database to look at every row; who gets a row is still the index' to say.
package struct RowPrefilter: Sendable {
    package enum Rows: Sendable, Equatable {
        case all
        /// Those that hold one of the texts (`BoundFilter.fragments`).
        case holding(Set<String>)
    }

    /// By the table's oid. No row of another table concerns anybody.
    package private(set) var tables: [UInt32: Rows] = [:]
    /// More texts for one table would cost more to look for than its rows to read.
    private let mostTexts: Int

    package init(mostTexts: Int) {
        self.mostTexts = mostTexts
    }

    mutating func add(_ filter: BoundFilter) {
        let oid = filter.table.oid
        guard let fragments = filter.fragments, case .holding(var texts) = tables[oid, default: .holding([])] else {
            tables[oid] = .all
            return
        }
        texts.formUnion(fragments)
        tables[oid] = texts.count > mostTexts ? .all : .holding(texts)
    }
}

package import Wire

/// Which rows can concern some groups, told by little: their table, and a text that is in them.
///
/// A necessary condition, cheap enough for a database to look at every row; who gets a row is still the index' to say.
package struct RowPrefilter: Sendable {
    package enum Rows: Sendable, Equatable {
        case all
        /// Those that hold one of the texts (`BoundFilter.fragments`).
        case holding(Set<Name>)
    }

    /// Which rows of each table can concern a group, by the table's oid. No row of another table concerns any.
    package private(set) var tables: [UInt32: Rows] = [:]
    /// How many texts one table may have: more would cost more to look for than its rows to read.
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
        texts.formUnion(fragments.map { Name($0) })
        tables[oid] = texts.count > mostTexts ? .all : .holding(texts)
    }
}

extension BoundFilter {
    /// Texts of which every record that meets the filter holds at least one, as `row_to_json` writes it: `"n":5`. Nil where
    /// none can be named with certainty.
    ///
    /// It is for whoever looks for rows in a store that knows no filters: what holds none need not be read. Other records
    /// may hold one as well, so each that does is still to be evaluated.
    package var fragments: [String]? {
        conditions.compactMap(\.fragments).min { $0.count < $1.count }
    }
}

extension BoundCondition {
    fileprivate var fragments: [String]? {
        guard equalTo != nil, Self.isPlain(column.name.utf8) else { return nil }
        var fragments: [String] = []
        for text in texts {
            guard let json = json(of: text) else { return nil }
            fragments.append("\"\(column.name)\":\(json)")
        }
        return fragments
    }

    /// NULL in a list is equal to nothing.
    private var texts: [String] {
        switch source.test {
        case .value(_, let text): [text]
        case .list(let members): members.compactMap { $0 }
        case .keyword: []
        }
    }

    /// How the one value that equals the text is written. A number may go on behind it, which finds some too many.
    private func json(of text: String) -> String? {
        switch (column.type, FilterValueReader.read(text, for: column)) {
        case ("uuid", .value(.uuid(let value))): "\"\(UUIDText.write(value))\""
        case ("int2", .value), ("int4", .value), ("int8", .value): NumberScan(text.utf8).integer.map(String.init)
        case ("text", .value(.bytes(let bytes))), ("varchar", .value(.bytes(let bytes))):
            Self.isPlain(bytes) ? "\"\(text)\"" : nil
        default: nil
        }
    }

    /// Characters that stand for themselves in JSON, in every encoding that a database can have.
    private static func isPlain(_ bytes: some Sequence<UInt8>) -> Bool {
        bytes.allSatisfy { (0x20..<0x7F).contains($0) && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "\\") }
    }
}

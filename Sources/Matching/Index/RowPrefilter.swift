package import Wire

/// A cheap test for rows that can concern some groups: their table, and a text that they contain.
///
/// A necessary condition, cheap enough for a database to apply to every row; the index still decides the recipients.
package struct RowPrefilter: Sendable {
    package enum Rows: Sendable, Equatable {
        case all
        /// Rows that contain one of the texts (`BoundFilter.fragments`).
        case holding(Set<Name>)
    }

    /// The rows of each table that can concern a group, by the table's oid. Rows of other tables concern none.
    package private(set) var tables: [UInt32: Rows] = [:]
    /// Limit of texts per table: looking for more would cost more than reading the table's rows.
    private let mostTexts: Int

    package init(mostTexts: Int) {
        self.mostTexts = mostTexts
    }

    mutating func addFilter(_ filter: BoundFilter) {
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
    /// Texts of which every record that meets the filter contains at least one, as `row_to_json` writes it: `"n":5`. Nil if
    /// no such texts are certain.
    ///
    /// For a search in a store that cannot evaluate filters: records without such a text need not be read. Other records
    /// may contain one as well, so every hit must still be evaluated.
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

    /// NULL in a list equals nothing.
    private var texts: [String] {
        switch source.test {
        case .value(_, let text): [text]
        case .list(let members): members.compactMap { $0 }
        case .keyword: []
        }
    }

    /// The JSON of the one value that equals the text. A number may continue after the fragment, which yields some false
    /// hits.
    private func json(of text: String) -> String? {
        switch (column.type, FilterValueReader.readValue(text, for: column)) {
        case ("uuid", .value(.uuid(let value))): "\"\(UUIDText.formatUUID(value))\""
        case ("int2", .value), ("int4", .value), ("int8", .value): NumberScan(text.utf8).integer.map(String.init)
        case ("text", .value(.bytes(let bytes))), ("varchar", .value(.bytes(let bytes))):
            Self.isPlain(bytes) ? "\"\(text)\"" : nil
        default: nil
        }
    }

    /// Characters that JSON does not escape, in any encoding that a database can have.
    private static func isPlain(_ bytes: some Sequence<UInt8>) -> Bool {
        bytes.allSatisfy { (0x20..<0x7F).contains($0) && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "\\") }
    }
}

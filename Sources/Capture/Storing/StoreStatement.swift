import Matching
import Postgres
import Wire

/// Facts about a relation that the stream lacks: the names of its types, and the table's present columns.
struct ResolvedRelation {
    struct TableColumn: Equatable {
        let name: Name
        /// The expression of a stored generated column over other columns of the row.
        let expression: Name?
        let isGenerated: Bool
    }

    /// By oid; missing if the type is gone.
    let types: [UInt32: String]
    /// Schema and name, quoted; nil if the table is gone.
    let table: String?
    /// In order; empty if the table is gone.
    let columns: [TableColumn]
}

/// The degree to which a statement depends on the table as it is now, and on its types: the first level that Postgres accepts
/// is used.
enum StoreCare: Int, Comparable {
    /// The row has the form that a trigger would have written.
    case full
    /// The table was altered since the change: only the columns of the stream are stored.
    case streamOnly
    /// A value cannot be read as its type, or has no JSON: each value is tried by itself, and becomes a text if that
    /// fails.
    case text
    /// Every value is a text, and no code of a type runs: such code may end the session.
    case bare

    var next: StoreCare? { StoreCare(rawValue: rawValue + 1) }

    static func < (one: StoreCare, other: StoreCare) -> Bool { one.rawValue < other.rawValue }
}

/// The statement that stores the rows of one shape.
///
/// Postgres makes the JSON from the values' texts with the function that the triggers use (row_to_json), so that a row
/// looks the same on either path: the types' own input functions parse the texts. Every parameter is an array with one
/// element per row; no name from outside appears unquoted.
struct StoreStatement {
    let sql: String
    /// Oids of the parameters' types.
    let parameterTypes: [UInt32]

    init(for group: CaptureBatch.Group, _ resolved: ResolvedRelation, care: StoreCare) {
        let shape = group.shape
        let fixed = ["int4[]", "\"char\"[]", "timestamptz[]", "pg_lsn[]"]
        let count = group.columns.count
        parameterTypes = group.arrays.map(\.type)
        let arrays = (fixed + Array(repeating: "text[]", count: count)).enumerated()
            .map { "$\($0.offset + 1)::\($0.element)" }
        let names = ["nth", "op", "at", "lsn"] + (0..<count).map { "c\($0)" }
        // Unqualified: unnest of several arrays is a form of Postgres' grammar, not a function that a user could
        // replace.
        var sources = ["unnest(\(arrays.joined(separator: ", "))) b (\(names.joined(separator: ", ")))"]
        var records = (new: RecordSource.none, old: RecordSource.none)
        let values = ColumnValues(relation: shape.relation.description, resolved: resolved, care: care)
        if let places = shape.versions.new {
            let parameters = Dictionary(uniqueKeysWithValues: group.newColumns.enumerated().map { ($1, "b.c\($0)") })
            let present = places.compactMap { place in
                parameters[place].map { text in
                    ColumnValues.Present(place: place, expression: values.castExpression(text, at: place), text: text)
                }
            }
            let isWhole = shape.size != .huge
            records.new = values.recordSource(of: present, isWhole: isWhole, named: "n", from: &sources)
            if !shape.versions.unchanged.isEmpty, care == .full,
                let look = values.lookupJoin(shape.versions.unchanged, knowing: parameters)
            {
                sources.append(look.source)
                let found = values.recordSource(
                    of: present + look.columns, isWhole: isWhole, named: "w", from: &sources)
                // A row that is gone, or has another key by now, is not found: its unknown values are left out.
                records.new = found.whereFound(else: records.new)
            }
        }
        if let places = shape.versions.old {
            let present = places.enumerated().map { index, place in
                let text = "b.c\(group.newColumns.count + index)"
                return ColumnValues.Present(
                    place: place, expression: values.castExpression(text, at: place), text: text)
            }
            let isWhole = shape.size != .huge && places.count == shape.relation.description.columns.count
            records.old = values.recordSource(of: present, isWhole: isWhole, named: "o", from: &sources)
        }
        sql = Self.insertStatement(records, from: sources, size: shape.size, of: shape.relation.description)
    }

    /// 1048580, as in the triggers: 1 MiB and the four bytes in which Postgres stores the length.
    private static func insertStatement(
        _ records: (new: RecordSource, old: RecordSource), from sources: [String], size: RowShape.Size,
        of relation: RelationDescription
    ) -> String {
        let (table, hasJSON) = (relation.oid, relation.columns.contains { [114, 3802].contains($0.type) })
        let isLarge =
            switch size {
            case .small: "false"
            case .huge: "true"
            case .large:
                "coalesce(greatest(pg_catalog.pg_column_size(r.record), pg_catalog.pg_column_size(r.old_record)) "
                    + "> 1048580, false)"
            }
        let fields = ["record", "old_record"].map { field in
            size == .small
                ? "r.\(field)"
                : "case when r.large and r.\(field) is not null then roost.reduced(r.\(field)) else r.\(field) end"
        }
        return """
            insert into roost.change (id, relid, op, reduced, at, lsn, record, old_record, row_text, old_row_text)
            overriding system value
            select ((select pg_catalog.current_setting('roost.ids')::int8[]))[r.nth], \(table), r.op, r.large, r.at, r.lsn,
                   \(fields.joined(separator: ", ")),
                   case when not r.large then r.row_text end, case when not r.large then r.old_row_text end
            from (
                select r.*, \(isLarge) as large
                from (
                    select b.nth, b.op, b.at, b.lsn, \(records.new.json) as record, \(records.old.json) as old_record,
                           \(records.new.textExpression(of: table, hasJSON: hasJSON)) as row_text,
                           \(records.old.textExpression(of: table, hasJSON: hasJSON)) as old_row_text
                    from \(sources.joined(separator: "\n        "))\(size == .small ? "" : " offset 0")
                ) r\(size == .small ? "" : " offset 0")
            ) r
            """
    }
}

/// The source of one version of a row, in SQL.
private struct RecordSource {
    let json: String
    /// The row itself; nil if there is none.
    let row: String?
    /// The version used if the row was not found.
    private var fallback: String?

    static var none: RecordSource { RecordSource(json: "null::json", row: nil) }

    init(json: String, row: String?) {
        self.json = json
        self.row = row
    }

    /// This source if the row was found, else the other one.
    func whereFound(else other: RecordSource) -> RecordSource {
        var source = RecordSource(
            json: "case when f.is_found then \(json) else \(other.json) end", row: row)
        source.fallback = other.row
        return source
    }

    /// An SQL expression for the text that keeps what the JSON loses (SchemaRows.sql).
    ///
    /// - Parameter hasJSON: whether the change has a column of JSON, which the table may have lost since.
    func textExpression(of table: UInt32, hasJSON: Bool) -> String {
        guard let row else { return "null::text" }
        let known = "roost.text_need(\(table))"
        let need = hasJSON ? "greatest(\(known), 1)" : known
        func text(_ row: String) -> String { "roost.row_text(\(row), null, \(need))" }
        let made = fallback.map { "case when f.is_found then \(text(row)) else \(text($0)) end" } ?? text(row)
        return "case when \(need) > 0 then \(made) end"
    }
}

/// SQL expressions for a row's columns.
private struct ColumnValues {
    struct Present {
        /// The place in the relation's description.
        let place: Int
        let expression: String
        /// The value's text, as it was streamed.
        var text: String?
    }

    let relation: RelationDescription
    let resolved: ResolvedRelation
    let care: StoreCare

    /// Parses a text as a column's type.
    func castExpression(_ text: String, at place: Int) -> String {
        guard care != .bare, let type = resolved.types[relation.columns[place].type] else { return text }
        return care == .text ? "roost.text_as_json(\(text), \(SQLText.literal(type)))" : "\(text)::\(type)"
    }

    /// A lateral join that looks up present values of columns that the stream lacks, by the replica identity: a value
    /// that no UPDATE has touched is still the same, unless a later UPDATE changed it, whose own change then follows.
    func lookupJoin(
        _ places: [Int], knowing parameters: [Int: String]
    ) -> (source: String, columns: [Present])? {
        let keys = relation.columns.indices.filter { relation.columns[$0].isIdentity }
        let now = Set(resolved.columns.map(\.name))
        guard let table = resolved.table, !keys.isEmpty, keys.allSatisfy({ parameters[$0] != nil }),
            (keys + places).allSatisfy({ now.contains(relation.columns[$0].name) })
        else { return nil }
        let isSame = keys.map { key in
            "t.\(SQLText.identifier(relation.columns[key].name)) = \(castExpression(parameters[key] ?? "null", at: key))"
        }
        let columns = places.enumerated().map { "t.\(SQLText.identifier(relation.columns[$1].name)) as u\($0)" }
        let source =
            "left join lateral (select true as is_found, \(columns.joined(separator: ", ")) from \(table) t where \(isSame.joined(separator: " and ")) limit 1) f on true"
        return (source, places.enumerated().map { Present(place: $1, expression: "f.u\($0)") })
    }

    /// Builds the JSON of one version of the row. Adds the source of its values to `sources`.
    ///
    /// - Parameter isWhole: whether all columns are present, so that generated columns can be computed.
    func recordSource(
        of present: [Present], isWhole: Bool, named alias: String, from sources: inout [String]
    ) -> RecordSource {
        let sorted = present.sorted { $0.place < $1.place }
        let values = sorted.map { "\($0.expression) as \(SQLText.identifier(relation.columns[$0.place].name))" }
        guard !values.isEmpty else { return RecordSource(json: "'{}'::json", row: nil) }
        let json = "pg_catalog.row_to_json(\(alias).*)"
        let isComplete = isWhole && sorted.count == relation.columns.count
        guard isComplete, care == .full, let all = withGenerated() else {
            sources.append("cross join lateral (select \(values.joined(separator: ", "))) \(alias)")
            // Values that were turned into JSON no longer have their types.
            let texts = sorted.map { $0.text ?? $0.expression }.joined(separator: ", ")
            return RecordSource(json: json, row: care >= .text ? "row(\(texts))" : "\(alias).*")
        }
        sources.append(
            "cross join lateral (select \(all) from (select \(values.joined(separator: ", "))) s) \(alias)")
        return RecordSource(json: json, row: "\(alias).*")
    }

    /// The table's columns including generated ones, which the stream has only since Postgres 18; nil if there are
    /// none, or if the table no longer matches the stream.
    private func withGenerated() -> String? {
        let generated = resolved.columns.filter(\.isGenerated)
        let streamed = relation.columns.map(\.name)
        guard !generated.isEmpty, !generated.contains(where: { streamed.contains($0.name) }),
            resolved.columns.filter({ !$0.isGenerated }).map(\.name) == streamed
        else { return nil }
        return resolved.columns.map { column in
            let name = SQLText.identifier(column.name)
            guard column.isGenerated else { return "s.\(name)" }
            return "(\(column.expression ?? "null")) as \(name)"
        }.joined(separator: ", ")
    }
}

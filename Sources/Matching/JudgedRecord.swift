import Wire

/// A record in the form that policies and filters judge: JSON that Postgres reads back as exactly the row that was written.
///
/// The JSON that clients receive does not always read back so (SchemaRows.sql). In a judged record, a value whose
/// JSON is not exact is replaced by its text, as a string, which Postgres reads by the type's input function. JSON cannot
/// tell a JSON null from SQL's, so a member with an empty name, which no column can have, holds the texts of JSON nulls by
/// column. Without that member, either kind of null is possible. The value of a column that has since been renamed is left
/// out, because it is unknown whether its text or its JSON would be read. An empty array as that member says that the nulls
/// of json columns are SQL's, but nothing about nulls inside other columns' values: the writer did not know of those.
package enum JudgedRecord {
    /// The name of that member.
    package static let marker = ""

    /// - Parameters:
    ///   - text: the text that the outbox has beside the record: nil if it has none, empty if the record reads back
    ///     exactly.
    ///   - table: the table when the record was written.
    static func bytes(of record: [UInt8], text: [UInt8]?, table: Table) -> [UInt8] {
        guard let text else { return record }
        if text.isEmpty {
            return table.columns.contains(where: \.isJSON) ? markRecord(record, by: "[]") : record
        }
        guard let values = RowText.fields(of: text) else { return record }
        var out = JSONWriter(reserving: record.count + text.count)
        var nulls: [(rawKey: ArraySlice<UInt8>, text: [UInt8])] = []
        var place = 0
        var fields = RowFields(table: table)
        out.openObject()
        fields.forEach(in: record[...]) { column, rawKey, json in
            defer { place += 1 }
            guard place < values.count else { return }
            let known = column.map { table.columns[$0] }
            if let value = values[place], isInexact(json, in: known) {
                // The type decides whether the text or the JSON is the value.
                guard let known else { return }
                guard known.isJSON else {
                    out.writeKey(raw: rawKey)
                    return out.writeValue(String(decoding: value, as: UTF8.self))
                }
                if isNull(json) { nulls.append((rawKey, value)) }
            }
            out.writeKey(raw: rawKey)
            out.writeValue(json: json)
        }
        // The text is another row's: only the JSON is left.
        guard place == values.count else { return record }
        out.writeKey(marker)
        out.object { object in
            for null in nulls {
                object.writeKey(raw: null.rawKey)
                object.writeValue(String(decoding: null.text, as: UTF8.self))
            }
        }
        out.closeObject()
        return out.bytes
    }

    /// True if the JSON may not read back as the value: the type is one that only Postgres compares, or the value is null,
    /// an object or an array.
    ///
    /// - Parameter column: nil for a column that the table now has under another name, or does not have yet.
    private static func isInexact(_ json: ArraySlice<UInt8>, in column: Column?) -> Bool {
        column?.comparison == .postgres || isNull(json) || [.object, .array].contains(JSON(trusted: json).kind)
    }

    /// The record, marked to say that its nulls are SQL's.
    package static func knowingNulls(_ record: [UInt8]) -> [UInt8] { markRecord(record, by: "{}") }

    private static func markRecord(_ record: [UInt8], by mark: String) -> [UInt8] {
        guard record.last == UInt8(ascii: "}") else { return record }
        return record.dropLast() + Array("\(record.count == 2 ? "" : ",")\"\":\(mark)}".utf8)
    }

    /// Compares the first byte only: a json column keeps its text as written, with any white space.
    package static func isNull(_ json: ArraySlice<UInt8>) -> Bool { json.first == UInt8(ascii: "n") }
}

/// The text of a row as Postgres writes it (`record_out`): `(1,"a ""quoted"" text",,"{1,2}")`.
enum RowText {
    /// The fields' texts, nil for null.
    ///
    /// - Returns: nil if the text is not a row's.
    static func fields(of text: [UInt8]) -> [[UInt8]?]? {
        guard text.count >= 2, text.first == UInt8(ascii: "("), text.last == UInt8(ascii: ")") else { return nil }
        let end = text.count - 1
        var fields: [[UInt8]?] = []
        var field: [UInt8] = []
        var (isQuoted, hasQuotes) = (false, false)
        var at = 1
        while at <= end {
            let byte = text[at]
            if at == end || byte == UInt8(ascii: ",") && !isQuoted {
                if isQuoted { return nil }
                fields.append(field.isEmpty && !hasQuotes ? nil : field)
                field = []
                hasQuotes = false
            } else if byte == UInt8(ascii: "\"") {
                if isQuoted, at + 1 < end, text[at + 1] == byte {
                    field.append(byte)
                    at += 1
                } else {
                    isQuoted.toggle()
                    hasQuotes = true
                }
            } else if byte == UInt8(ascii: "\\"), at + 1 < end {
                at += 1
                field.append(text[at])
            } else {
                field.append(byte)
            }
            at += 1
        }
        return fields
    }
}

extension RowChange {
    /// The row after the change, in the form that policies and filters judge.
    package var judgedRecord: [UInt8]? {
        record.map { JudgedRecord.bytes(of: $0, text: isReduced ? nil : text, table: table) }
    }

    /// The row before the change, in the form that policies and filters judge.
    package var judgedOldRecord: [UInt8]? {
        oldRecord.map { JudgedRecord.bytes(of: $0, text: isReduced ? nil : oldText, table: table) }
    }
}

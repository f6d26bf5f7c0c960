import Wire

/// A record as policies and filters are asked about it: JSON that reads back as exactly the row that was written.
///
/// A record's own JSON, which clients are sent, does not always (Migration028Texts.sql). A judged one has the text of a
/// value in the place of what is no value of its type, as a string, which Postgres reads by the type's input function. A
/// JSON null cannot be told from SQL's in JSON, so a member without a name, which no column can be, has their texts by
/// column. Where that member is missing, nobody knows which of the two a null is. A value of a column that the table has
/// under another name by now is left out, where nobody knows whether its text or its JSON would be read. An empty array
/// in its place says that the nulls of json columns are SQL's, and nothing of what lies inside of others: the writer did
/// not know of those.
package enum JudgedRecord {
    /// The name of that member.
    package static let marker = ""

    /// - Parameters:
    ///   - text: what the outbox has beside the record: nil where that is nothing, empty where the record reads back exactly.
    ///   - table: as the record was written.
    static func bytes(of record: [UInt8], text: [UInt8]?, table: Table) -> [UInt8] {
        guard let text else { return record }
        if text.isEmpty {
            return table.columns.contains(where: \.isJSON) ? marked(record, by: "[]") : record
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
                // Whether the text or the JSON is the value rests on the type.
                guard let known else { return }
                guard known.isJSON else {
                    out.key(raw: rawKey)
                    return out.value(String(decoding: value, as: UTF8.self))
                }
                if isNull(json) { nulls.append((rawKey, value)) }
            }
            out.key(raw: rawKey)
            out.value(json: json)
        }
        // The text is of another row: what the JSON says is all there is.
        guard place == values.count else { return record }
        out.key(marker)
        out.object { object in
            for null in nulls {
                object.key(raw: null.rawKey)
                object.value(String(decoding: null.text, as: UTF8.self))
            }
        }
        out.closeObject()
        return out.bytes
    }

    /// Whether JSON may not read back as the value: it is of a type that only Postgres compares, or it was a JSON value or an
    /// object of another type when it was written.
    ///
    /// - Parameter column: nil for one that the table has under another name by now, or has not yet.
    private static func isInexact(_ json: ArraySlice<UInt8>, in column: Column?) -> Bool {
        column?.comparison == .postgres || isNull(json) || [.object, .array].contains(JSON(trusted: json).kind)
    }

    /// A record whose nulls are SQL's.
    package static func knowingNulls(_ record: [UInt8]) -> [UInt8] { marked(record, by: "{}") }

    private static func marked(_ record: [UInt8], by mark: String) -> [UInt8] {
        guard record.last == UInt8(ascii: "}") else { return record }
        return record.dropLast() + Array("\(record.count == 2 ? "" : ",")\"\":\(mark)}".utf8)
    }

    /// A json column has its value as somebody wrote it, white space included.
    package static func isNull(_ json: ArraySlice<UInt8>) -> Bool { json.first == UInt8(ascii: "n") }
}

/// The text of a row as Postgres writes it (`record_out`): `(1,"a ""quoted"" text",,"{1,2}")`.
enum RowText {
    /// The fields' texts, nil for null.
    ///
    /// - Returns: nil for what is no such text.
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
    /// The row after the change, as policies and filters are asked about it.
    package var judgedRecord: [UInt8]? {
        record.map { JudgedRecord.bytes(of: $0, text: isReduced ? nil : text, table: table) }
    }

    /// The row before the change, as policies and filters are asked about it.
    package var judgedOldRecord: [UInt8]? {
        oldRecord.map { JudgedRecord.bytes(of: $0, text: isReduced ? nil : oldText, table: table) }
    }
}

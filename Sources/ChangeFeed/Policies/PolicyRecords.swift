import Hub
import Wire

/// A question's rows as they are sent: with the columns that policies look at, and rows equal in those only once.
struct PolicyRecords {
    private(set) var records: [[UInt8]] = []
    /// For each row of the question its record; nil for one that lacks a column, and so cannot be decided.
    private(set) var places: [Int?] = []
    /// A column that some row lacks.
    private(set) var missing: String?

    init(_ question: PolicyQuestion, columns: Set<String>) {
        let wanted = columns.sorted()
        let keys = wanted.map { RecordKeys.encoded($0) }
        var numbers: [[UInt8]: Int] = [:]
        places.reserveCapacity(question.rows.count)
        for row in question.rows {
            let (record, lacking) = Self.reduced(row, to: keys)
            if let lacking {
                missing = wanted[lacking]
                places.append(nil)
                continue
            }
            let number = numbers[record] ?? records.count
            if number == records.count {
                numbers[record] = number
                records.append(record)
            }
            places.append(number)
        }
    }

    /// The members with these keys, in the order of the keys, or the index of a key that is missing.
    private static func reduced(_ row: [UInt8], to keys: [[UInt8]]) -> (record: [UInt8], lacking: Int?) {
        var found = [ArraySlice<UInt8>?](repeating: nil, count: keys.count)
        JSON(trusted: row[...]).forEachMember { member in
            if let index = keys.firstIndex(where: { member.rawKey.elementsEqual($0) }) {
                found[index] = member.value.bytes
            }
        }
        var out: [UInt8] = [UInt8(ascii: "{")]
        for index in keys.indices {
            guard let value = found[index] else { return ([], index) }
            if index > 0 { out.append(UInt8(ascii: ",")) }
            out.append(UInt8(ascii: "\""))
            out += keys[index]
            out += [UInt8(ascii: "\""), UInt8(ascii: ":")]
            out += value
        }
        out.append(UInt8(ascii: "}"))
        return (out, nil)
    }
}

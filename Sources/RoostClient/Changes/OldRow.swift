public import Foundation

/// A row as it was. Which of its columns are there depends on the table: the primary key always, under row level
/// security nothing else.
public struct OldRow: Sendable, Equatable {
    /// The text of a JSON object.
    public let json: Data
    let decoder: JSONDecoder

    /// One column; nil where it is not there or is not of that type.
    public func value<Value: Decodable>(_ column: String, as type: Value.Type) -> Value? {
        do throws(RoostError) {
            return try decoder.roostDecode([String: Column<Value>].self, from: json)[column]?.value
        } catch {
            return nil
        }
    }

    /// The row, where all that `Row` wants is there.
    public func decode<Row: Decodable>(as type: Row.Type) throws(RoostError) -> Row {
        try decoder.roostDecode(type, from: json)
    }

    public static func == (left: OldRow, right: OldRow) -> Bool { left.json == right.json }

    /// A column of another type than the one that is looked for must not be in its way.
    private struct Column<Value: Decodable>: Decodable {
        let value: Value?

        init(from decoder: any Decoder) throws {
            do { value = try decoder.singleValueContainer().decode(Value.self) } catch { value = nil }
        }
    }
}

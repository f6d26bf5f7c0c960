public import Foundation

extension JSONDecoder {
    /// Reads rows as Postgres writes them: `Date` from the text of `timestamptz`, `timestamp` (as UTC) and `date`, and
    /// from seconds since 1970.
    public static var roost: JSONDecoder {
        let decoder = JSONDecoder()
        decoder.dateDecodingStrategy = .custom { decoder in
            let container = try decoder.singleValueContainer()
            do {
                return Date(timeIntervalSince1970: try container.decode(Double.self))
            } catch DecodingError.typeMismatch {
                let text = try container.decode(String.self)
                guard let date = PostgresTime.date(text) else {
                    throw DecodingError.dataCorruptedError(
                        in: container, debugDescription: "\(text) is no time as Postgres writes it.")
                }
                return date
            }
        }
        return decoder
    }

    func roostDecode<Value: Decodable>(_ type: Value.Type, from json: Data) throws(RoostError) -> Value {
        do { return try decode(type, from: json) } catch { throw .decoding(String(describing: error)) }
    }
}

extension JSONEncoder {
    /// Writes `Date` so that Postgres and other clients read it: ISO 8601.
    public static var roost: JSONEncoder {
        let encoder = JSONEncoder()
        encoder.dateEncodingStrategy = .custom { date, encoder in
            var container = encoder.singleValueContainer()
            try container.encode(PostgresTime.text(date))
        }
        return encoder
    }
}

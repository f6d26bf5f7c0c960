public import Foundation
import Wire

extension JSONDecoder {
    /// A decoder for rows in Postgres' format: it decodes a `Date` from the text of `timestamptz`, `timestamp` (as UTC)
    /// and `date`, and from seconds since 1970.
    public static var roost: JSONDecoder {
        let decoder = JSONDecoder()
        decoder.dateDecodingStrategy = .custom { decoder in
            let container = try decoder.singleValueContainer()
            do {
                return Date(timeIntervalSince1970: try container.decode(Double.self))
            } catch DecodingError.typeMismatch {
                let text = try container.decode(String.self)
                guard let date = PostgresTime.parseDate(text) else {
                    throw DecodingError.dataCorruptedError(
                        in: container, debugDescription: "\(text) is no time as Postgres writes it.")
                }
                return date
            }
        }
        return decoder
    }

    /// Decodes a value; every error is `.decoding`.
    func roostDecode<Value: Decodable>(_ type: Value.Type, from json: Data) throws(RoostError) -> Value {
        do { return try decode(type, from: json) } catch { throw .decoding(String(describing: error)) }
    }
}

extension JSONEncoder {
    /// An encoder that writes a `Date` in the format of Postgres and other clients: ISO 8601, in UTC, with
    /// milliseconds.
    public static var roost: JSONEncoder {
        let encoder = JSONEncoder()
        encoder.dateEncodingStrategy = .custom { date, encoder in
            var container = encoder.singleValueContainer()
            try container.encode(PostgresTime.formatDate(date))
        }
        return encoder
    }
}

/// Parses and formats times like Postgres' `to_jsonb`: ISO 8601 with a `T`.
package enum PostgresTime {
    /// Parses `2026-01-31T12:00:00.123456+00:00`, `…Z`, a time without a zone (as UTC), or a date alone. Nil for
    /// anything else, including `infinity`.
    package static func parseDate(_ text: String) -> Date? {
        var rest = text.utf8[...]
        guard let year = parseNumber(&rest, 4), skipCharacter("-", &rest), let month = parseNumber(&rest, 2),
            skipCharacter("-", &rest),
            let day = parseNumber(&rest, 2), (1...12).contains(month), (1...31).contains(day)
        else { return nil }
        var seconds = Double(CivilDate(year: year, month: month, day: day).daysSince1970 * 86_400)
        if rest.isEmpty { return Date(timeIntervalSince1970: seconds) }
        guard skipCharacter("T", &rest) || skipCharacter(" ", &rest), let hour = parseNumber(&rest, 2),
            skipCharacter(":", &rest),
            let minute = parseNumber(&rest, 2), skipCharacter(":", &rest), let second = parseNumber(&rest, 2),
            hour <= 24, minute <= 59,
            second <= 60
        else { return nil }
        seconds += Double(hour * 3600 + minute * 60 + second)
        if skipCharacter(".", &rest) {
            let digits = rest.prefix { (0x30...0x39).contains($0) }
            guard !digits.isEmpty, let fraction = Double("0." + String(decoding: digits, as: UTF8.self)) else {
                return nil
            }
            seconds += fraction
            rest = rest.dropFirst(digits.count)
        }
        guard let offset = parseZone(&rest), rest.isEmpty else { return nil }
        return Date(timeIntervalSince1970: seconds - Double(offset))
    }

    /// Formats a time in UTC, with milliseconds.
    package static func formatDate(_ date: Date) -> String {
        CivilTime(millisecondsSince1970: Int((date.timeIntervalSince1970 * 1000).rounded())).text
    }

    /// Parses the zone: seconds east of UTC; 0 if there is none.
    private static func parseZone(_ rest: inout Substring.UTF8View) -> Int? {
        if rest.isEmpty || skipCharacter("Z", &rest) { return 0 }
        let sign = skipCharacter("-", &rest) ? -1 : 1
        if sign == 1, !skipCharacter("+", &rest) { return nil }
        guard let hours = parseNumber(&rest, 2) else { return nil }
        _ = skipCharacter(":", &rest)
        let minutes = parseNumber(&rest, 2) ?? 0
        _ = skipCharacter(":", &rest)
        return sign * (hours * 3600 + minutes * 60 + (parseNumber(&rest, 2) ?? 0))
    }

    private static func parseNumber(_ rest: inout Substring.UTF8View, _ digits: Int) -> Int? {
        let text = rest.prefix(digits)
        guard text.count == digits, text.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        rest = rest.dropFirst(digits)
        return text.reduce(0) { $0 * 10 + Int($1) - 0x30 }
    }

    private static func skipCharacter(_ character: Character, _ rest: inout Substring.UTF8View) -> Bool {
        guard let byte = rest.first, byte == character.asciiValue else { return false }
        rest = rest.dropFirst()
        return true
    }
}

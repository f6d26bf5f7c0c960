import Wire

/// Postgres' text of a timestamptz under UTC and ISO, `2026-11-21 08:00:00.123456+00`.
package enum Timestamps {
    /// The form for clients: `2026-11-21T08:00:00.123Z`.
    package static func forClients(_ text: UnsafeBufferPointer<UInt8>) -> String {
        guard text.count >= 19, text[10] == UInt8(ascii: " ") else { return String(decoding: text, as: UTF8.self) }
        return String(unsafeUninitializedCapacity: 24) { out in
            for index in 0..<19 { out[index] = text[index] }
            out[10] = UInt8(ascii: "T")
            out[19] = UInt8(ascii: ".")
            // Postgres omits trailing zeros.
            let hasFraction = text.count > 19 && text[19] == UInt8(ascii: ".")
            var inFraction = hasFraction
            for index in 20..<23 {
                inFraction = inFraction && index < text.count && (48...57).contains(text[index])
                out[index] = inFraction ? text[index] : UInt8(ascii: "0")
            }
            out[23] = UInt8(ascii: "Z")
            return 24
        }
    }

    /// Microseconds since 1970; nil for a time outside four-digit years.
    package static func microseconds(_ text: UnsafeBufferPointer<UInt8>) -> Int64? {
        guard text.count >= 19, text[4] == UInt8(ascii: "-"), text[10] == UInt8(ascii: " ") else { return nil }
        func number(_ range: Range<Int>) -> Int { range.reduce(0) { $0 * 10 + Int(text[$1] &- 48) } }
        let date = CivilDate(year: number(0..<4), month: number(5..<7), day: number(8..<10))
        let seconds = date.daysSince1970 * 86_400 + number(11..<13) * 3600 + number(14..<16) * 60 + number(17..<19)
        var fraction: Int64 = 0
        var place = text.count > 19 && text[19] == UInt8(ascii: ".") ? 20 : text.count
        var unit: Int64 = 100_000
        while place < text.count, (48...57).contains(text[place]), unit > 0 {
            fraction += Int64(text[place] - 48) * unit
            unit /= 10
            place += 1
        }
        return Int64(seconds) * 1_000_000 + fraction
    }

    /// A number that differs if the times do.
    package static func fingerprint(_ text: UnsafeBufferPointer<UInt8>) -> UInt64 {
        text.reduce(0) { $0 &* 31 &+ UInt64($1) }
    }
}

/// Postgres' text of a timestamptz under UTC and ISO, `2026-11-21 08:00:00.123456+00`.
package enum Timestamps {
    /// As clients read it: `2026-11-21T08:00:00.123Z`.
    package static func forClients(_ text: UnsafeBufferPointer<UInt8>) -> String {
        guard text.count >= 19, text[10] == UInt8(ascii: " ") else { return String(decoding: text, as: UTF8.self) }
        return String(unsafeUninitializedCapacity: 24) { out in
            for index in 0..<19 { out[index] = text[index] }
            out[10] = UInt8(ascii: "T")
            out[19] = UInt8(ascii: ".")
            // Postgres leaves trailing zeros out.
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

    /// A number that differs where the times do.
    package static func fingerprint(_ text: UnsafeBufferPointer<UInt8>) -> UInt64 {
        text.reduce(0) { $0 &* 31 &+ UInt64($1) }
    }
}

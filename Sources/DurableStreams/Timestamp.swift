import Wire

/// A date and time in the form of RFC 3339: `2026-01-31T12:00:00Z`, with an optional fraction and an offset from UTC.
package struct Timestamp: Equatable, Sendable {
    /// Milliseconds since 1970.
    package let milliseconds: Int64

    package init(milliseconds: Int64) { self.milliseconds = milliseconds }

    /// Nil if the text is not such a time.
    package init?(_ text: String) {
        var rest = Array(text.utf8)[...]
        func readNumber(_ digits: Int, behind separator: StaticString? = nil) -> Int? {
            if let separator {
                guard let first = rest.first, separator.withUTF8Buffer({ $0.contains(first) }) else { return nil }
                rest = rest.dropFirst()
            }
            let field = rest.prefix(digits)
            guard field.count == digits, field.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
            rest = rest.dropFirst(digits)
            return field.reduce(0) { $0 * 10 + Int($1 - 0x30) }
        }
        guard let year = readNumber(4), let month = readNumber(2, behind: "-"), let day = readNumber(2, behind: "-"),
            let hour = readNumber(2, behind: "Tt "), let minute = readNumber(2, behind: ":"),
            let second = readNumber(2, behind: ":")
        else { return nil }
        var thousandths = 0
        if rest.first == UInt8(ascii: ".") {
            let fraction = rest.dropFirst().prefix { (0x30...0x39).contains($0) }
            guard !fraction.isEmpty else { return nil }
            rest = rest.dropFirst(1 + fraction.count)
            for (place, digit) in zip([100, 10, 1], fraction) { thousandths += place * Int(digit - 0x30) }
        }
        var ahead = 0
        switch rest.first {
        case UInt8(ascii: "Z"), UInt8(ascii: "z"): rest = rest.dropFirst()
        case UInt8(ascii: "+"), UInt8(ascii: "-"):
            let sign = rest.first == UInt8(ascii: "-") ? -1 : 1
            guard let hours = readNumber(2, behind: "+-"), let minutes = readNumber(2, behind: ":"), hours < 24,
                minutes < 60
            else {
                return nil
            }
            ahead = sign * (hours * 60 + minutes)
        default: return nil
        }
        let date = CivilDate(year: year, month: month, day: day)
        // A leap second counts as the second after it (RFC 3339, section 5.7).
        guard rest.isEmpty, date.exists, hour < 24, minute < 60, second <= 60 else { return nil }
        let seconds = date.daysSince1970 * 86_400 + hour * 3600 + (minute - ahead) * 60 + second
        milliseconds = Int64(seconds * 1000 + thousandths)
    }

    package var text: String {
        let time = CivilTime(millisecondsSince1970: Int(milliseconds))
        let (thousandths, padding) = (
            String(time.millisecond), time.millisecond < 10 ? "00" : time.millisecond < 100 ? "0" : ""
        )
        return "\(time.day)T\(time.clock)\(time.millisecond == 0 ? "" : ".\(padding)\(thousandths)")Z"
    }
}

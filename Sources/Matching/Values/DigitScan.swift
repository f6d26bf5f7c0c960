/// Reads numbers of fixed width and the marks between them.
struct DigitScan<Bytes: Collection<UInt8>> where Bytes.SubSequence == Bytes {
    private var rest: Bytes

    init(_ bytes: Bytes) {
        rest = bytes
    }

    var isAtEnd: Bool { rest.isEmpty }

    func next(is mark: String) -> Bool {
        rest.starts(with: mark.utf8)
    }

    mutating func take(_ mark: String) -> Bool {
        guard next(is: mark) else { return false }
        rest = rest.dropFirst(mark.utf8.count)
        return true
    }

    mutating func number(digits: ClosedRange<Int>) -> (value: Int64, digits: Int)? {
        var value: Int64 = 0
        var count = 0
        while count < digits.upperBound, let byte = rest.first, byte &- 0x30 < 10 {
            value = value * 10 + Int64(byte &- 0x30)
            count += 1
            rest = rest.dropFirst()
        }
        return count >= digits.lowerBound ? (value, count) : nil
    }

    /// `HH:MM[:SS[.ffffff]]` in microseconds.
    mutating func timeOfDay() -> Int64? {
        guard let (hour, _) = number(digits: 2...2), take(":"), let (minute, _) = number(digits: 2...2) else {
            return nil
        }
        var (second, fraction): (Int64, Int64) = (0, 0)
        if take(":") {
            guard let (value, _) = number(digits: 2...2) else { return nil }
            second = value
            if take(".") {
                guard let (value, digits) = number(digits: 1...6) else { return nil }
                fraction = (digits..<6).reduce(value) { value, _ in value * 10 }
            }
        }
        guard hour < 24, minute < 60, second < 60 else { return nil }
        return ((hour * 60 + minute) * 60 + second) * 1_000_000 + fraction
    }

    /// `Z` or `±HH[:MM[:SS]]` in seconds east of UTC; nil if there is something that is no zone.
    mutating func zone() -> (offset: Int64, isGiven: Bool)? {
        if take("Z") { return (0, true) }
        let isWest = next(is: "-")
        guard take("+") || take("-") else { return (0, false) }
        guard let (hour, _) = number(digits: 2...2) else { return nil }
        var (minute, second): (Int64, Int64) = (0, 0)
        if take(":") {
            guard let (value, _) = number(digits: 2...2) else { return nil }
            minute = value
            if take(":") {
                guard let (value, _) = number(digits: 2...2) else { return nil }
                second = value
            }
        }
        // Postgres knows no zone further away.
        guard hour < 16, minute < 60, second < 60 else { return nil }
        let offset = (hour * 60 + minute) * 60 + second
        return (isWest ? -offset : offset, true)
    }
}

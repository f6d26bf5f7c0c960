/// A number of any length, compared exactly as Postgres' numeric is: trailing zeros do not matter, and NaN is equal to
/// itself and above everything.
struct ExactDecimal: Hashable, Sendable {
    /// −1, 0 or 1; NaN counts as positive.
    private let sign: Int8
    /// The power of ten of the first digit; `Int.max` for infinities and NaN.
    private let magnitude: Int
    /// The first 19 significant digits, left-aligned, so that they compare as one word.
    private let head: UInt64
    /// The digits after those, without trailing zeros. Empty for all common numbers.
    private let tail: [UInt8]

    private init(sign: Int8, magnitude: Int, head: UInt64, tail: [UInt8]) {
        self.sign = sign
        self.magnitude = magnitude
        self.head = head
        self.tail = tail
    }

    static let infinity = ExactDecimal(sign: 1, magnitude: .max, head: 0, tail: [])
    static let negativeInfinity = ExactDecimal(sign: -1, magnitude: .max, head: 0, tail: [])
    static let nan = ExactDecimal(sign: 1, magnitude: .max, head: 1, tail: [])

    /// Reads `[+-]digits[.digits][e[+-]digits]`; a digit on one side of the point is enough. Nil for anything else, and for
    /// exponents beyond numeric's range.
    init?(_ text: some Collection<UInt8>) {
        var scan = NumberScan(text)
        guard scan.isComplete else { return nil }
        // Trailing zeros carry no value, and equal numbers must be equal bit by bit.
        while scan.digits.last == 0 { scan.digits.removeLast() }
        guard let first = scan.digits.firstIndex(where: { $0 != 0 }) else {
            self.init(sign: 0, magnitude: 0, head: 0, tail: [])
            return
        }
        var head: UInt64 = 0
        for i in 0..<19 {
            let at = first + i
            head = head * 10 + UInt64(at < scan.digits.count ? scan.digits[at] : 0)
        }
        self.init(
            sign: scan.isNegative ? -1 : 1, magnitude: scan.integerDigits - first - 1 + scan.exponent, head: head,
            tail: Array(scan.digits.dropFirst(first + 19)))
    }
}

extension ExactDecimal: Comparable {
    static func < (one: ExactDecimal, other: ExactDecimal) -> Bool {
        if one.sign != other.sign { return one.sign < other.sign }
        return one.sign < 0 ? other.isSmallerInSize(than: one) : one.isSmallerInSize(than: other)
    }

    private func isSmallerInSize(than other: ExactDecimal) -> Bool {
        if magnitude != other.magnitude { return magnitude < other.magnitude }
        if head != other.head { return head < other.head }
        return tail.lexicographicallyPrecedes(other.tail)
    }
}

/// The parts of a number's text.
struct NumberScan {
    private(set) var isNegative = false
    /// The digits before and after the point, as values.
    var digits: [UInt8] = []
    /// Number of digits before the point.
    private(set) var integerDigits = 0
    private(set) var exponent = 0
    /// False if there was an exponent or a point.
    private(set) var isPlainInteger = true
    /// True if the whole text was a number.
    private(set) var isComplete = false

    init(_ text: some Collection<UInt8>) {
        var rest = text[...]
        func isDigit(_ byte: UInt8?) -> Bool { byte.map { $0 &- 0x30 < 10 } ?? false }
        func takeSign() -> Bool {
            let isMinus = rest.first == UInt8(ascii: "-")
            if isMinus || rest.first == UInt8(ascii: "+") { rest = rest.dropFirst() }
            return isMinus
        }
        func takeDigits() {
            while let byte = rest.first, isDigit(byte) {
                digits.append(byte &- 0x30)
                rest = rest.dropFirst()
            }
        }
        isNegative = takeSign()
        takeDigits()
        integerDigits = digits.count
        if rest.first == UInt8(ascii: ".") {
            isPlainInteger = false
            rest = rest.dropFirst()
            takeDigits()
        }
        guard !digits.isEmpty else { return }
        if let byte = rest.first, byte | 0x20 == UInt8(ascii: "e") {
            isPlainInteger = false
            rest = rest.dropFirst()
            let isMinus = takeSign()
            var count = 0
            while let byte = rest.first, isDigit(byte) {
                exponent = exponent * 10 + Int(byte &- 0x30)
                count += 1
                // No type goes further, and an unbounded exponent would overflow.
                guard count <= 6 else { return }
                rest = rest.dropFirst()
            }
            guard count > 0 else { return }
            if isMinus { exponent = -exponent }
        }
        isComplete = rest.isEmpty
    }

    var isZero: Bool { digits.allSatisfy { $0 == 0 } }

    /// The value of a number without point and exponent, if it fits.
    var integer: Int64? {
        guard isComplete, isPlainInteger else { return nil }
        var value: Int64 = 0
        for digit in digits {
            let (shifted, overflow) = value.multipliedReportingOverflow(by: 10)
            let (sum, carry) = shifted.subtractingReportingOverflow(Int64(digit))
            guard !overflow, !carry else { return nil }
            value = sum
        }
        guard !isNegative else { return value }
        return value == .min ? nil : -value
    }
}

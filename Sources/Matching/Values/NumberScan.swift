/// The parts of a number's text.
struct NumberScan {
    private(set) var isNegative = false
    /// The digits before and behind the point, as values.
    var digits: [UInt8] = []
    /// How many of the digits stand before the point.
    private(set) var integerDigits = 0
    private(set) var exponent = 0
    /// There was an exponent, or a point.
    private(set) var isPlainInteger = true
    /// The text was a number from its first to its last byte.
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
                // No type goes further, and an exponent without bounds would overflow.
                guard count <= 6 else { return }
                rest = rest.dropFirst()
            }
            guard count > 0 else { return }
            if isMinus { exponent = -exponent }
        }
        isComplete = rest.isEmpty
    }

    var isZero: Bool { digits.allSatisfy { $0 == 0 } }

    /// The value of a number without point and exponent, where it fits.
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

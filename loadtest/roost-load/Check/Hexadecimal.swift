/// Numbers of a fixed width, without strings in between.
enum Hexadecimal {
    private static let digits = Array("0123456789abcdef".utf8)

    static func text(_ value: UInt64, width: Int) -> String {
        var bytes: [UInt8] = []
        append(value, width: width, to: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }

    /// The lowest `width` digits.
    static func append(_ value: UInt64, width: Int, to bytes: inout [UInt8]) {
        for place in (0..<width).reversed() { bytes.append(digits[Int(value >> UInt64(4 * place) & 15)]) }
    }

    /// Nil where there is something else than lower-case digits.
    @inline(__always)
    static func value(_ bytes: UnsafeRawBufferPointer, _ start: Int, width: Int) -> UInt64? {
        var value: UInt64 = 0
        for at in start..<(start + width) {
            let byte = bytes[at]
            let digit = byte &- 48 < 10 ? byte &- 48 : byte &- 87
            guard digit < 16, byte < 58 || byte > 96 else { return nil }
            value = value << 4 | UInt64(digit)
        }
        return value
    }
}

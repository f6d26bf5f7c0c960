/// How a cursor's numbers become text and back. Reading never traps: the text comes from clients.
enum CursorBytes {
    static func append(_ snapshot: Snapshot, above base: UInt64, to bytes: inout [UInt8]) {
        append(snapshot.xmax &- base, to: &bytes)
        append(UInt64(snapshot.running.count), to: &bytes)
        var before: UInt64?
        for transaction in snapshot.running {
            append(before.map { transaction &- $0 } ?? snapshot.xmax &- transaction, to: &bytes)
            before = transaction
        }
    }

    private static func append(_ number: UInt64, to bytes: inout [UInt8]) {
        var rest = number
        while rest >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(rest))
    }

    struct Reader {
        private var rest: ArraySlice<UInt8>

        init(_ bytes: [UInt8]) { rest = bytes[...] }

        var isAtEnd: Bool { rest.isEmpty }

        mutating func byte() -> UInt8? { rest.popFirst() }

        mutating func word() -> UInt32? {
            var value: UInt32 = 0
            for shift in stride(from: 0, to: 32, by: 8) {
                guard let byte = byte() else { return nil }
                value |= UInt32(byte) << shift
            }
            return value
        }

        private mutating func number() -> UInt64? {
            var value: UInt64 = 0
            // Nine groups of seven bits: no transaction id is 2^63 or more.
            for shift in stride(from: 0, to: 63, by: 7) {
                guard let byte = byte() else { return nil }
                value |= UInt64(byte & 0x7F) << shift
                if byte < 0x80 { return value }
            }
            return nil
        }

        mutating func snapshot(above base: UInt64) -> Snapshot? {
            guard let distance = number(), let count = number(), count <= UInt64(rest.count) else { return nil }
            let (xmax, isTooLarge) = base.addingReportingOverflow(distance)
            guard !isTooLarge, xmax <= UInt64(Int64.max) else { return nil }
            var running: [UInt64] = []
            for index in 0..<count {
                guard let step = number(), step > 0 else { return nil }
                let start = index == 0 ? xmax.subtractingReportingOverflow(step) : nil
                let next = start ?? running[Int(index) - 1].addingReportingOverflow(step)
                guard !next.overflow, next.partialValue < xmax else { return nil }
                running.append(next.partialValue)
            }
            return Snapshot(xmax: xmax, running: running)
        }
    }

    // MARK: base64url without padding

    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
    private static let values = alphabet.enumerated().reduce(into: [UInt8?](repeating: nil, count: 256)) {
        $0[Int($1.element)] = UInt8($1.offset)
    }

    static func encoded(_ bytes: [UInt8]) -> String {
        var out: [UInt8] = []
        out.reserveCapacity(bytes.count * 4 / 3 + 1)
        var bits: UInt32 = 0
        var count = 0
        for byte in bytes {
            bits = bits << 8 | UInt32(byte)
            count += 8
            while count >= 6 {
                count -= 6
                out.append(alphabet[Int(bits >> count & 0x3F)])
            }
        }
        if count > 0 { out.append(alphabet[Int(bits << (6 - count) & 0x3F)]) }
        return String(decoding: out, as: UTF8.self)
    }

    static func decoded(_ text: ArraySlice<UInt8>) -> [UInt8]? {
        var out: [UInt8] = []
        var bits: UInt32 = 0
        var count = 0
        for character in text {
            guard let value = values[Int(character)] else { return nil }
            bits = bits << 6 | UInt32(value)
            count += 6
            if count >= 8 {
                count -= 8
                out.append(UInt8(truncatingIfNeeded: bits >> count))
            }
        }
        // One text for each cursor: what is left over is less than a character, and nothing.
        return count < 6 && bits & ((1 << count) - 1) == 0 ? out : nil
    }
}

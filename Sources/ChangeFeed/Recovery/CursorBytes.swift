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
}

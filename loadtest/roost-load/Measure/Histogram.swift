/// Counts of nanoseconds in buckets 1.6 % wide, from 0 to centuries.
struct Histogram {
    private static let subBits = 6
    private static let perOctave = 1 << subBits
    private var counts = [UInt64](repeating: 0, count: (64 - subBits + 1) << subBits)
    private(set) var count: UInt64 = 0
    private(set) var largest: UInt64 = 0

    mutating func add(_ value: UInt64) {
        counts[Self.bucket(of: value)] += 1
        count += 1
        largest = max(largest, value)
    }

    /// The value that `share` of all values do not exceed, rounded up to its bucket's end.
    func quantile(_ share: Double) -> UInt64 {
        guard count > 0 else { return 0 }
        let rank = max(1, UInt64((share * Double(count)).rounded(.up)))
        var seen: UInt64 = 0
        for (bucket, number) in counts.enumerated() {
            seen += number
            if seen >= rank { return min(Self.end(of: bucket), largest) }
        }
        return largest
    }

    private static func bucket(of value: UInt64) -> Int {
        guard value >= UInt64(perOctave) else { return Int(value) }
        let exponent = 63 - value.leadingZeroBitCount
        let shift = exponent - subBits
        return (shift + 1) << subBits + Int(value >> UInt64(shift)) - perOctave
    }

    private static func end(of bucket: Int) -> UInt64 {
        guard bucket >= perOctave else { return UInt64(bucket) }
        let shift = UInt64(bucket >> subBits - 1)
        return (UInt64(bucket & (perOctave - 1) + perOctave + 1) << shift) - 1
    }
}

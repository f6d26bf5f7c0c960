/// Numbers that look random and are the same for the same seed, in any order they are asked for.
struct SplitMix: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        return Self.mixed(state)
    }

    /// The number that belongs to `seed` and some coordinates.
    static func value(_ seed: UInt64, _ first: Int, _ second: Int = 0) -> UInt64 {
        mixed(
            mixed(seed &+ UInt64(bitPattern: Int64(first)) &* 0x9E37_79B9_7F4A_7C15)
                &+ UInt64(bitPattern: Int64(second)))
    }

    /// The same as a share from 0 to 1.
    static func share(_ seed: UInt64, _ first: Int, _ second: Int = 0) -> Double {
        Double(value(seed, first, second) >> 11) / Double(1 << 53)
    }

    private static func mixed(_ value: UInt64) -> UInt64 {
        var z = value
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }
}

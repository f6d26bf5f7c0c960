/// A 64-bit hash that is the same in every process, unlike Swift's `Hasher`: FNV-1a with a final mix.
///
/// Compares copies among trusted hubs; it does not resist deliberate collisions.
package struct FixedHash: Sendable {
    private var state: UInt64 = 0xcbf2_9ce4_8422_2325

    package init() {}

    package mutating func combine(_ bytes: some Sequence<UInt8>) {
        for byte in bytes { state = (state ^ UInt64(byte)) &* 0x0000_0100_0000_01b3 }
    }

    package mutating func combine(_ number: UInt64) {
        var rest = number
        for _ in 0..<8 {
            state = (state ^ (rest & 0xff)) &* 0x0000_0100_0000_01b3
            rest >>= 8
        }
    }

    package var value: UInt64 { Self.mix(state) }

    /// Spreads each bit of a number over all of them (the finalizer of SplitMix64). Different numbers stay different.
    static func mix(_ number: UInt64) -> UInt64 {
        var mixed = number
        mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        return mixed ^ (mixed >> 31)
    }
}

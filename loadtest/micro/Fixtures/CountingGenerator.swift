/// Numbers that differ, and are the same in every run, so that texts made of them have the same lengths.
struct CountingGenerator: RandomNumberGenerator {
    private var state: UInt64 = 1

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        return state
    }
}

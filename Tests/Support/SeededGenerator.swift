/// A small generator, so that a case that fails comes again with its seed (splitmix64).
package struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    package init(seed: UInt64) { state = seed }

    package mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }

    /// A number of `0..<bound`.
    package mutating func below(_ bound: Int) -> Int { Int(truncatingIfNeeded: next() >> 1) % bound }

    /// One time in `count`.
    package mutating func chance(_ count: Int) -> Bool { Int.random(in: 0..<count, using: &self) == 0 }

    package mutating func pick<T>(_ choices: [T]) -> T { choices[below(choices.count)] }

    /// Nil where there is nothing to pick from.
    package mutating func pick<T>(from choices: [T]) -> T? { choices.isEmpty ? nil : pick(choices) }
}

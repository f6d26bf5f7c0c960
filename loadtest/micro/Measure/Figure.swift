/// What one operation costs.
struct Figure {
    let name: String
    /// Blocks of memory asked for, to two decimals: that much is repeatable.
    let allocations: Double
    /// Bytes asked for.
    let bytes: Double
    /// Blocks that were not given back: what an operation adds to the hub's memory.
    let kept: Double
    /// Nil where only allocations were counted.
    let time: Time?

    /// CPU nanoseconds, and the processor's instructions.
    struct Time {
        let median, least: Double
        /// Nil where they cannot be counted.
        let instructions: Double?
        /// Nil where the operation decides no pairs.
        let pairsPerSecond: Double?
    }
}

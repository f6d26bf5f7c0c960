import CAllocationCount

/// The processor's instructions of the calling thread. Unlike times they hardly depend on what else the machine does, so
/// two builds are compared by them.
enum InstructionCount {
    /// Nil where they cannot be counted: in many containers and virtual machines.
    static var now: Int? {
        let count = roost_instructions_now()
        return count < 0 ? nil : Int(count)
    }
}

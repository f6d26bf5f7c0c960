import ArgumentParser

/// What is published.
struct MessageOptions: ParsableArguments {
    @Option(help: ArgumentHelp("Bytes of a message's text.", valueName: "bytes"))
    var size = 150

    @Option(help: ArgumentHelp("How many messages are due at the same moment.", valueName: "count"))
    var burst = 1

    func validate() throws {
        guard size >= StampCode.count else {
            throw ValidationError(
                "--size is at least \(StampCode.count): so much takes the stamp by which it is known.")
        }
        guard burst > 0 else { throw ValidationError("--burst must be over 0.") }
    }

    func set(in plan: inout LoadPlan) { (plan.size, plan.burst) = (size, burst) }
}

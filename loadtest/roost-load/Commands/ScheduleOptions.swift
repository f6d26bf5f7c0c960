import ArgumentParser

/// Messages at a fixed rate.
struct ScheduleOptions: ParsableArguments {
    @Option(help: ArgumentHelp("Messages a second, all channels together.", valueName: "number"))
    var rate = 10.0

    @Option(help: ArgumentHelp("How long it is measured.", valueName: "seconds"))
    var duration = 10.0

    @Option(help: ArgumentHelp("How long it goes on before that.", valueName: "seconds"))
    var warmUp = 1.0

    @Option(help: ArgumentHelp("How long to wait for the last deliveries.", valueName: "seconds"))
    var settle = 10.0

    func validate() throws {
        guard rate > 0, duration > 0, warmUp >= 0, settle >= 0 else {
            throw ValidationError("--rate and --duration must be over 0; --warm-up and --settle not below.")
        }
    }

    func set(in plan: inout LoadPlan) {
        plan.rate = rate
        (plan.seconds, plan.warmUp, plan.settle) = (duration, warmUp, settle)
    }
}

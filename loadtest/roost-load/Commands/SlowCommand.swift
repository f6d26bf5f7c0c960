import ArgumentParser

struct SlowCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "slow",
        abstract: "A fan-out some of whose readers stop reading: do the others notice, and what becomes of them?",
        discussion: """
            Latencies and checks are those of the readers that read. The stalled ones read on when the measurement is \
            over: then it shows whether the server has cut them off. They receive into small buffers, so that it does \
            not take long until the server's own fill up.
            """
    )

    @OptionGroup(title: "Target")
    var target: TargetOptions

    @OptionGroup(title: "Sockets")
    var crowd: CrowdOptions

    @OptionGroup(title: "Messages")
    var message: MessageOptions

    @OptionGroup(title: "Schedule")
    var schedule: ScheduleOptions

    @OptionGroup(title: "Report")
    var report: ReportOptions

    @Option(help: ArgumentHelp("How many sockets stop reading when it begins.", valueName: "count"))
    var stalled = 10

    func validate() throws {
        guard (0..<crowd.sockets).contains(stalled) else {
            throw ValidationError("--stalled is less than --sockets: somebody has to read.")
        }
    }

    func run() throws {
        var plan = try crowd.plan(.slow, target, channels: 1)
        message.set(in: &plan)
        schedule.set(in: &plan)
        plan.stalled = stalled
        try LoadRun(plan: plan, target: target, report: report).run()
    }
}

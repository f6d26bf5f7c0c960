import ArgumentParser

struct IdleCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "idle",
        abstract: "Open sockets that join a channel and then do nothing.",
        discussion: """
            With --pid it tells what a socket costs the hub: memory, CPU per connect and join, and CPU while nothing \
            happens but heartbeats. Start the hub afresh for a figure of its memory: what an earlier test left behind \
            is used again.
            """
    )

    @OptionGroup(title: "Target")
    var target: TargetOptions

    @OptionGroup(title: "Sockets")
    var crowd: CrowdOptions

    @OptionGroup(title: "Report")
    var report: ReportOptions

    @Flag(help: "All join one channel, instead of one each.")
    var shared = false

    @Option(
        name: [.customLong("hold"), .customLong("duration")],
        help: ArgumentHelp("How long to hold them.", valueName: "seconds"))
    var hold = 10.0

    func validate() throws {
        guard hold > 0 else { throw ValidationError("--hold must be over 0.") }
    }

    func run() throws {
        var plan = try crowd.plan(.idle, target, channels: shared ? 1 : crowd.sockets)
        plan.seconds = hold
        try LoadRun(plan: plan, target: target, report: report).run()
    }
}

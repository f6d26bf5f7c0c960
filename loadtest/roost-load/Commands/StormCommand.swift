import ArgumentParser

struct StormCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "storm",
        abstract: "Everybody is cut off at once and comes back: how long until the last has joined?",
        discussion: """
            All sockets are closed at one moment and connect again, as many at a time as --ramp says (all of them, if it \
            is not given). With --wait-for-cut nobody is closed: restart the server while it waits; latency then counts \
            from when a socket lost its connection, and those who are refused try again.
            """
    )

    @OptionGroup(title: "Target")
    var target: TargetOptions

    @OptionGroup(title: "Sockets")
    var crowd: CrowdOptions

    @OptionGroup(title: "Report")
    var report: ReportOptions

    @Flag(help: "Wait until the server cuts them off.")
    var waitForCut = false

    @Option(help: ArgumentHelp("How long to wait for the last to be back.", valueName: "seconds"))
    var within = 60.0

    func validate() throws {
        guard within > 0 else { throw ValidationError("--within must be over 0.") }
    }

    func run() throws {
        var plan = try crowd.plan(.storm, target, channels: crowd.sockets)
        plan.ramp = target.ramp ?? crowd.sockets
        plan.seconds = within
        plan.waitsForCut = waitForCut
        try LoadRun(plan: plan, target: target, report: report).run()
    }
}

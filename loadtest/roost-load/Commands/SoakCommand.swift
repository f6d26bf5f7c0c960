import ArgumentParser

struct SoakCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "soak",
        abstract: "The conversations of `chat` for long: does memory stay flat, does latency stay low?",
        discussion: """
            Besides what `chat` checks, the memory of each --pid must not grow: a line is laid through its second half, \
            and may rise by --memory-tolerance at most. The report has the 99th percentile of every minute.
            """
    )

    @OptionGroup(title: "Target")
    var target: TargetOptions

    @OptionGroup(title: "Conversations")
    var chat: ChatOptions

    @OptionGroup(title: "Rows")
    var rows: RowOptions

    @OptionGroup(title: "Report")
    var report: ReportOptions

    @Option(help: ArgumentHelp("How long it is measured.", valueName: "seconds"))
    var duration = 1800.0

    @Option(help: ArgumentHelp("By how much memory may grow over the second half.", valueName: "percent"))
    var memoryTolerance = 5.0

    func validate() throws {
        guard duration > 0, memoryTolerance >= 0 else {
            throw ValidationError("--duration must be over 0, --memory-tolerance not below.")
        }
    }

    func run() throws {
        let plan = try chat.plan(.soak, target, rows, duration: duration)
        try LoadRun(plan: plan, target: target, report: report, memoryTolerance: memoryTolerance).run()
    }
}

import ArgumentParser

struct PresenceCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "presence",
        abstract: "Members of channels come, change and go: how soon do the others know, and do they know right?",
        discussion: """
            Every socket tracks its presence in a channel. At --rate, one of them tracks something else, or is absent \
            for a moment, or leaves the channel for a moment. Every socket keeps the sum of the members that it was \
            told of; at the end all have to agree with who is there.
            """
    )

    @OptionGroup(title: "Target")
    var target: TargetOptions

    @OptionGroup(title: "Sockets")
    var crowd: CrowdOptions

    @OptionGroup(title: "Schedule")
    var schedule: ScheduleOptions

    @OptionGroup(title: "Report")
    var report: ReportOptions

    func validate() throws {
        guard crowd.channelsPerSocket == 1 else { throw ValidationError("Here every socket is in one channel.") }
    }

    func run() throws {
        var plan = try crowd.plan(.presence, target, channels: (crowd.sockets + 99) / 100)
        schedule.set(in: &plan)
        try LoadRun(plan: plan, target: target, report: report).run()
    }
}

import ArgumentParser

struct FanoutCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "fanout",
        abstract: "Publish to channels and measure broadcast → client.",
        discussion: """
            Sockets listen to channels, in which others publish at a fixed rate. Latency counts from when a message was \
            due, and again from when it was sent. With --publish-prefix any WebSocket server can be loaded that hands \
            messages on: nats, mosquitto, one of your own.
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

    @OptionGroup(title: "Other protocols")
    var raw: RawOptions

    @OptionGroup(title: "Report")
    var report: ReportOptions

    func run() throws {
        var plan = try crowd.plan(.fanout, target, channels: 1, raw: raw.protocol)
        plan.target.subprotocol = raw.subprotocol
        message.set(in: &plan)
        schedule.set(in: &plan)
        try LoadRun(plan: plan, target: target, report: report).run()
    }
}

import ArgumentParser

struct IdleCommand: LoadCommand {
    static let configuration = CommandConfiguration(
        commandName: "idle",
        abstract: "Open sockets that join a channel and then do nothing.",
        discussion: """
            With --pid it tells what a socket costs the hub: memory, CPU per connect and join, and CPU while nothing \
            happens but heartbeats. Restart the hub before you measure its memory: memory that an earlier test left \
            behind is used again.
            """
    )

    @OptionGroup(title: "Target")
    var target: TargetOptions

    @OptionGroup(title: "Sockets")
    var sockets: SocketOptions

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

    func plan() throws -> LoadPlan {
        var plan = try sockets.plan(.idle, target, channels: shared ? 1 : sockets.count)
        plan.seconds = hold
        return plan
    }
}

struct FanoutCommand: LoadCommand {
    static let configuration = CommandConfiguration(
        commandName: "fanout",
        abstract: "Publish to channels and measure broadcast → client.",
        discussion: """
            Sockets listen to channels, in which others publish at a fixed rate. Latency counts from when a message \
            was due, and again from when it was sent. With --publish-prefix you can load any WebSocket server that \
            passes messages on: nats, mosquitto, one of your own.
            """
    )

    @OptionGroup(title: "Target")
    var target: TargetOptions

    @OptionGroup(title: "Sockets")
    var sockets: SocketOptions

    @OptionGroup(title: "Messages")
    var message: MessageOptions

    @OptionGroup(title: "Schedule")
    var schedule: ScheduleOptions

    @OptionGroup(title: "Other protocols")
    var raw: RawOptions

    @OptionGroup(title: "Report")
    var report: ReportOptions

    func plan() throws -> LoadPlan {
        var plan = try sockets.plan(.fanout, target, channels: 1, raw: raw.protocol)
        plan.target.subprotocol = raw.subprotocol
        message.set(in: &plan)
        schedule.set(in: &plan)
        return plan
    }
}

struct SlowCommand: LoadCommand {
    static let configuration = CommandConfiguration(
        commandName: "slow",
        abstract: "A fan-out some of whose readers stop reading: do the others notice, and what becomes of them?",
        discussion: """
            Latencies and checks are those of the readers that read. The stalled ones continue to read when the \
            measurement is over: this shows whether the server has cut them off. They receive into small buffers, so \
            that the server's own buffers fill up soon.
            """
    )

    @OptionGroup(title: "Target")
    var target: TargetOptions

    @OptionGroup(title: "Sockets")
    var sockets: SocketOptions

    @OptionGroup(title: "Messages")
    var message: MessageOptions

    @OptionGroup(title: "Schedule")
    var schedule: ScheduleOptions

    @OptionGroup(title: "Report")
    var report: ReportOptions

    @Option(help: ArgumentHelp("How many sockets stop reading when it begins.", valueName: "count"))
    var stalled = 10

    func validate() throws {
        guard (0..<sockets.count).contains(stalled) else {
            throw ValidationError("--stalled must be less than --sockets: somebody has to read.")
        }
    }

    func plan() throws -> LoadPlan {
        var plan = try sockets.plan(.slow, target, channels: 1)
        message.set(in: &plan)
        schedule.set(in: &plan)
        plan.stalled = stalled
        return plan
    }
}

struct PresenceCommand: LoadCommand {
    static let configuration = CommandConfiguration(
        commandName: "presence",
        abstract: "Members of channels come, change and go: how soon do the others know, and is what they know right?",
        discussion: """
            Every socket tracks its presence in a channel. At --rate, one of them tracks something else, or is absent \
            for a moment, or leaves the channel for a moment. Every socket keeps the sum of the members that it was \
            told of; at the end all have to agree with who is there.
            """
    )

    @OptionGroup(title: "Target")
    var target: TargetOptions

    @OptionGroup(title: "Sockets")
    var sockets: SocketOptions

    @OptionGroup(title: "Schedule")
    var schedule: ScheduleOptions

    @OptionGroup(title: "Report")
    var report: ReportOptions

    func validate() throws {
        guard sockets.channelsPerSocket == 1 else { throw ValidationError("Here every socket is in one channel.") }
    }

    func plan() throws -> LoadPlan {
        var plan = try sockets.plan(.presence, target, channels: (sockets.count + 99) / 100)
        schedule.set(in: &plan)
        return plan
    }
}

struct StormCommand: LoadCommand {
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
    var sockets: SocketOptions

    @OptionGroup(title: "Report")
    var report: ReportOptions

    @Flag(help: "Wait until the server cuts them off.")
    var waitForCut = false

    @Option(help: ArgumentHelp("How long to wait for the last to be back.", valueName: "seconds"))
    var within = 60.0

    func validate() throws {
        guard within > 0 else { throw ValidationError("--within must be over 0.") }
    }

    func plan() throws -> LoadPlan {
        var plan = try sockets.plan(.storm, target, channels: sockets.count)
        plan.ramp = target.ramp ?? sockets.count
        plan.seconds = within
        plan.waitsForCut = waitForCut
        return plan
    }
}

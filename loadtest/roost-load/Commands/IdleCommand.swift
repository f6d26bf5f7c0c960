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

    @Option(help: ArgumentHelp("How many sockets.", valueName: "count"))
    var sockets = 1000

    @Flag(help: "All join one channel, instead of one each.")
    var shared = false

    @Option(help: ArgumentHelp("How long to hold them.", valueName: "seconds"))
    var hold = 10.0

    func validate() throws {
        guard sockets > 0, hold > 0 else { throw ValidationError("--sockets and --hold must be over 0.") }
    }

    func run() throws {
        let shared = shared
        let test = IdleTest(
            fleet: FleetPlan(
                count: sockets, endpoint: try target.endpoint(), ramp: target.ramp,
                heartbeatSeconds: target.heartbeat, awaitsSubscription: false,
                join: { slot in
                    #"["1","1","realtime:idle\#(shared ? "" : ":\(slot)")","phx_join",{"config":{}}]"#
                }),
            hold: hold, processes: target.processes)
        let report = try test.run()
        print(target.json ? report.json : report.text)
        guard report.closedSockets == 0 else {
            StandardError.write("Failed: the hub closed \(report.closedSockets) idle sockets.\n")
            throw ExitCode(1)
        }
    }
}

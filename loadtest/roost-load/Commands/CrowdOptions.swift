import ArgumentParser

/// Sockets in channels.
struct CrowdOptions: ParsableArguments {
    @Option(help: ArgumentHelp("How many sockets.", valueName: "count"))
    var sockets = 1000

    @Option(help: ArgumentHelp("How many channels; they are spread over them.", valueName: "count"))
    var channels: Int?

    @Option(help: ArgumentHelp("Channels that each socket joins.", valueName: "count"))
    var channelsPerSocket = 1

    func validate() throws {
        guard sockets > 0, channels ?? 1 > 0, channelsPerSocket > 0 else {
            throw ValidationError("--sockets, --channels and --channels-per-socket must be over 0.")
        }
        guard channelsPerSocket <= channels ?? .max else {
            throw ValidationError("A socket cannot join \(channelsPerSocket) of \(channels ?? 1) channels.")
        }
    }

    func plan(
        _ scenario: Scenario, _ target: TargetOptions, channels usual: Int, raw: RawProtocol? = nil
    ) throws -> LoadPlan {
        var plan = try target.plan(scenario, sockets: sockets, raw: raw)
        plan.channels = max(channels ?? usual, channelsPerSocket)
        plan.channelsPerSocket = channelsPerSocket
        return plan
    }
}

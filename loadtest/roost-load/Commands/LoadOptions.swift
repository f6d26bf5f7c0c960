import ArgumentParser

/// Sockets in channels.
struct SocketOptions: ParsableArguments {
    @Option(name: .customLong("sockets"), help: ArgumentHelp("How many sockets.", valueName: "count"))
    var count = 1000

    @Option(help: ArgumentHelp("How many channels; they are spread over them.", valueName: "count"))
    var channels: Int?

    @Option(help: ArgumentHelp("Channels that each socket joins.", valueName: "count"))
    var channelsPerSocket = 1

    func validate() throws {
        guard count > 0, channels ?? 1 > 0, channelsPerSocket > 0 else {
            throw ValidationError("--sockets, --channels and --channels-per-socket must be over 0.")
        }
        guard channelsPerSocket <= channels ?? .max else {
            throw ValidationError("A socket cannot join \(channelsPerSocket) of \(channels ?? 1) channels.")
        }
    }

    func plan(
        _ scenario: Scenario, _ target: TargetOptions, channels usual: Int, raw: RawProtocol? = nil
    ) throws -> LoadPlan {
        var plan = try target.plan(scenario, sockets: count, raw: raw)
        plan.channels = max(channels ?? usual, channelsPerSocket)
        plan.channelsPerSocket = channelsPerSocket
        return plan
    }
}

/// Messages at a fixed rate.
struct ScheduleOptions: ParsableArguments {
    @Option(help: ArgumentHelp("Messages a second, all channels together.", valueName: "number"))
    var rate = 10.0

    @Option(help: ArgumentHelp("How long to measure.", valueName: "seconds"))
    var duration = 10.0

    @Option(help: ArgumentHelp("How long to send before that.", valueName: "seconds"))
    var warmUp = 1.0

    @Option(help: ArgumentHelp("How long to wait for the last deliveries.", valueName: "seconds"))
    var settle = 10.0

    func validate() throws {
        guard rate > 0, duration > 0, warmUp >= 0, settle >= 0 else {
            throw ValidationError("--rate and --duration must be over 0; --warm-up and --settle must not be negative.")
        }
    }

    func set(in plan: inout LoadPlan) {
        plan.rate = rate
        (plan.seconds, plan.warmUp, plan.settle) = (duration, warmUp, settle)
    }
}

/// What is published.
struct MessageOptions: ParsableArguments {
    @Option(help: ArgumentHelp("Bytes of a message's text.", valueName: "bytes"))
    var size = 150

    @Option(help: ArgumentHelp("How many messages are due at the same moment.", valueName: "count"))
    var burst = 1

    func validate() throws {
        guard size >= StampCode.count else {
            throw ValidationError(
                "--size must be at least \(StampCode.count): the stamp that identifies a message takes as much.")
        }
        guard burst > 0 else { throw ValidationError("--burst must be over 0.") }
    }

    func set(in plan: inout LoadPlan) { (plan.size, plan.burst) = (size, burst) }
}

/// Frames for servers that speak another protocol than Phoenix.
struct RawOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "What a subscriber sends instead of a join; may be repeated.",
            discussion: """
                {channel} is a channel's number; \\r, \\n, \\\\ and \\xNN are escapes. A message is --publish-prefix, \
                --size bytes with the stamp, --publish-suffix.
                """, valueName: "frame"))
    var subscribeFrame: [String] = []

    @Option(help: ArgumentHelp("How many messages answer that.", valueName: "count"))
    var acks = 0

    @Option(help: ArgumentHelp("What a publisher sends first; may be repeated.", valueName: "frame"))
    var publisherFrame: [String] = []

    @Option(help: ArgumentHelp("How many messages answer that.", valueName: "count"))
    var publisherAcks = 0

    @Option(help: ArgumentHelp("What stands before a message's text.", valueName: "text"))
    var publishPrefix: String?

    @Option(help: ArgumentHelp("What stands behind it.", valueName: "text"))
    var publishSuffix = ""

    @Flag(help: "Frames are binary.")
    var binaryFrames = false

    @Option(help: ArgumentHelp("The WebSocket's subprotocol, such as mqtt.", valueName: "name"))
    var subprotocol: String?

    func validate() throws {
        guard publishPrefix != nil || subscribeFrame.isEmpty && publisherFrame.isEmpty else {
            throw ValidationError("If frames are given, --publish-prefix has to be given as well; it may be empty.")
        }
        guard acks >= 0, publisherAcks >= 0 else {
            throw ValidationError("--acks and --publisher-acks must not be negative.")
        }
    }

    /// Nil where Phoenix is spoken.
    var `protocol`: RawProtocol? {
        publishPrefix.map {
            RawProtocol(
                subscribeFrames: subscribeFrame, greetingFrames: publisherFrame, acknowledgements: acks,
                publisherAcknowledgements: publisherAcks, prefix: $0, suffix: publishSuffix, isBinary: binaryFrames)
        }
    }
}

/// What is shown of a run, and what it is held to.
struct ReportOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "A bound, such as p99<10ms, typing_p99<20ms, lost<1 or delivered>1000; may be repeated.", valueName: "bound"
        ))
    var expect: [Expectation] = []

    @Flag(help: "Print one line of JSON instead of a table.")
    var json = false

    @Option(help: ArgumentHelp("Write a report with plots, one HTML file.", valueName: "file"))
    var html: String?

    @Option(help: ArgumentHelp("Write all results as JSON, second by second.", valueName: "file"))
    var record: String?

    @Flag(help: "No progress on standard error.")
    var quiet = false

    /// Before a run.
    func checkFiles() throws {
        for path in [html, record] { if let path { try ReportFile(path: path).checkIsWritable() } }
    }

    /// Shows it; ends with 1 where something was missed.
    func show(_ record: RunRecord) throws {
        print(json ? JSONReport.line(of: record) : ResultTable.text(of: record))
        if let html { try HTMLReport.write(record, to: html) }
        if let path = self.record { try JSONReport.write(record, to: path) }
        let missed = record.expectations.filter { !$0.holds }
        guard missed.isEmpty else {
            for verdict in missed {
                ErrorOutput.write("Failed: expected \(verdict.text), but found \(verdict.found).\n")
            }
            throw ExitCode(1)
        }
    }
}

import ArgumentParser
import Glibc
import Hub
import Logging
import Push
import Settings
import Synchronization
import Wire

struct PushCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "send",
        abstract: "Send notifications to phones by hand, or from a file.",
        discussion: """
            Prints a line of JSON for each, {"id","outcome"} and what the service said, and ends with 0 if all were delivered. \
            A file has one JSON object on each line: "token" (or "channel") and "payload", and as needed "kind", \
            "environment", "bundleId", "type", "id", "collapseId", "priority", "expiration", "lane", "replaces". \
            Examples: `roost push --token 0a1b… --title Hello --body World`, `roost push --file - < pushes.jsonl`.
            """
    )

    @Option(help: ArgumentHelp("The phone's, or the Live Activity's, token.", valueName: "token"))
    var token: String?

    @Option(help: "apns (Apple's devices) or fcm (Android). Default: apns.", transform: Self.parseKind)
    var kind = PushKind.apns

    @Option(help: ArgumentHelp("Instead of a token: a channel of iOS 18's broadcasts.", valueName: "base64"))
    var channel: String?

    @Option(help: ArgumentHelp("The whole payload.", valueName: "json"))
    var payload: String?

    @Option(help: "The alert's title.")
    var title: String?

    @Option(help: "The alert's text.")
    var body: String?

    @Option(help: "alert, background or liveactivity.", transform: Self.parseType)
    var type = PushType.alert

    @Option(help: "10, 5 or 1. Default: 10 for alerts, 5 for the rest.")
    var priority: Int?

    @Option(
        help: ArgumentHelp(
            "Of the pushes with the same collapse id, the phone shows only the newest.", valueName: "text"))
    var collapseID: String?

    @Option(help: "sandbox or production. Default: apns.environment.", transform: Self.parseEnvironment)
    var environment: PushEnvironment?

    @Option(help: ArgumentHelp("Send what is in this file, - for the standard input.", valueName: "file"))
    var file: String?

    @Option(help: ArgumentHelp("How long an answer may take.", valueName: "seconds"))
    var timeout = 20

    @Option(help: ArgumentHelp("How long to try in all, however often APNs puts it off.", valueName: "seconds"))
    var within = 300

    @OptionGroup(title: "Configuration")
    var options: ConfigurationOptions

    func validate() throws {
        guard [token, channel, file].count(where: { $0 != nil }) == 1 else {
            throw ValidationError("One of --token, --channel and --file is needed.")
        }
        if file == nil, (payload == nil) == (title == nil && body == nil) {
            throw ValidationError("Either --payload, or --title and --body, or one of these two, is needed.")
        }
        if timeout < 1 || within < 1 { throw ValidationError("--timeout and --within are at least 1 second.") }
    }

    func run() async throws {
        let configuration = try options.loadAndApply()
        let services = try configuration.pushServices().map { service in
            var service = service
            service.limits.answerTimeout = .seconds(timeout)
            service.limits.waitsWhenKeyIsRefused = false
            return service
        }
        if services.isEmpty { _ = try APNsConfiguration(configuration, for: "roost push") }
        let defaults = PushLine.Defaults(
            environment: environment ?? PushEnvironment(rawValue: configuration.push.environment) ?? .production,
            bundle: configuration.push.topic, type: type, priority: priority,
            deadline: Clock.now().unix + Int64(within) * 1000)
        let sending = PushRun(services, logger: configuration.logger)
        if try await !sendPushes(by: sending, defaults) { throw ExitCode(ExitStatus.unavailable.rawValue) }
    }

    private func sendPushes(by sending: PushRun, _ defaults: PushLine.Defaults) async throws -> Bool {
        if let file {
            var lines = try PushLines(file, defaults)
            return try await sending.sendAll { try lines.nextPush() }
        }
        var push: Push? = try singlePush(defaults)
        return try await sending.sendAll {
            defer { push = nil }
            return push
        }
    }

    /// Builds the push as a line of a file.
    private func singlePush(_ defaults: PushLine.Defaults) throws -> Push {
        let line = JSONWriter.object { line in
            line.writeMember(token == nil ? "channel" : "token", token ?? channel ?? "")
            line.writeMember("kind", kind.rawValue)
            if let collapseID { line.writeMember("collapseId", collapseID) }
            if let payload {
                line.writeMember("payload", json: Array(payload.utf8))
            } else {
                line.object("payload", writeAlert)
            }
        }
        do {
            return try PushLine(parsing: line, defaults).push
        } catch {
            throw RunFailure("This is not a push: \(error).", .usage)
        }
    }

    private func writeAlert(_ payload: inout JSONWriter) {
        if kind == .fcm {
            return payload.object("notification") { notification in
                if let title { notification.writeMember("title", title) }
                if let body { notification.writeMember("body", body) }
            }
        }
        payload.object("aps") { aps in
            aps.object("alert") { alert in
                if let title { alert.writeMember("title", title) }
                if let body { alert.writeMember("body", body) }
            }
            aps.writeMember("sound", "default")
        }
    }

    @Sendable private static func parseKind(_ name: String) throws -> PushKind {
        guard let kind = PushKind(rawValue: name), kind != .web else {
            throw ValidationError("apns or fcm is expected.")
        }
        return kind
    }

    @Sendable private static func parseType(_ name: String) throws -> PushType {
        guard let type = PushType(rawValue: name) else {
            throw ValidationError("alert, background or liveactivity is expected.")
        }
        return type
    }

    @Sendable private static func parseEnvironment(_ name: String) throws -> PushEnvironment {
        guard let environment = PushEnvironment(rawValue: name) else {
            throw ValidationError("sandbox or production is expected.")
        }
        return environment
    }
}

/// One run of `roost push`: sends notifications, and prints a line of JSON for each result.
struct PushRun {
    private let services: [PushServiceConfiguration]
    private let logger: Logger
    /// The time limit for answers after an interruption.
    private static let lastAnswers: Duration = .seconds(5)

    init(_ services: [PushServiceConfiguration], logger: Logger) {
        self.services = services
        self.logger = logger
    }

    private struct Progress {
        var finished = 0
        var areAllDelivered = true
    }

    /// - Returns: true if all were delivered.
    /// - Throws: any error of `next`, once the pushes before it have ended.
    func sendAll(_ next: () throws -> Push?) async throws -> Bool {
        Signals.handleSignals(to: [SIGINT, SIGTERM])
        let progress = Shared()
        let clients = PushClients(services, logger: logger) { finished in
            for (push, outcome) in finished {
                StandardOutput.writeLine(outcome.line(for: push.id, in: push.foundEnvironment))
            }
            progress.state.withLock { state in
                state.finished += finished.count
                state.areAllDelivered = state.areAllDelivered && finished.allSatisfy { $0.1 == .delivered }
            }
        }
        clients.start()
        var sent = 0
        var failure: (any Error)?
        do {
            while !Signals.wasInterrupted {
                guard clients.kinds.allSatisfy({ clients.room(for: $0) > 0 }) else {
                    try await Task.sleep(for: .milliseconds(5))
                    continue
                }
                guard let push = try next() else { break }
                guard clients.send([push]).isEmpty else {
                    throw RunFailure("Pushes of the kind \(push.kind) take settings that are not set.", .configuration)
                }
                sent += 1
            }
        } catch {
            failure = error
        }
        while !Signals.wasInterrupted, progress.state.withLock({ $0.finished }) < sent {
            try await Task.sleep(for: .milliseconds(5))
        }
        clients.stop(within: Self.lastAnswers)
        if let failure { throw failure }
        return progress.state.withLock { $0.areAllDelivered }
    }

    private final class Shared: Sendable {
        let state = Mutex(Progress())
    }
}

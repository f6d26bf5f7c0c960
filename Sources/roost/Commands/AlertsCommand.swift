import Administration
import ArgumentParser
import Hub
import Settings
import Stores
import Wire

struct AlertsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "alerts",
        abstract: "Say why users were alerted of a message, or were not.",
        discussion: """
            Reads what the hubs wrote down about a message: for each of its readers who has a phone, whether an alert was sent, what \
            Apple said, and why, or why not. Alerts are remembered for a week after they are of no use any more. Examples: `roost alerts \
            101`, `roost alerts 'public.messages 101'`, `roost alerts --user 6f1c…`.
            """
    )

    @Argument(help: "The message: its primary key, or with its table in front, as 'public.messages 101'.")
    var message: String?

    @Option(help: ArgumentHelp("The newest alerts of this user.", valueName: "id"))
    var user: String?

    @Option(help: ArgumentHelp("At most so many lines.", valueName: "count"))
    var limit = 100

    @OptionGroup(title: "Configuration")
    var options: ConfigurationOptions

    func validate() throws {
        if (message == nil) == (user == nil) {
            throw ValidationError("Name one thing to look for: a message, or a user with --user.")
        }
        guard limit > 0 else { throw ValidationError("--limit is a number from 1 on.") }
    }

    func run() async throws {
        let url = try options.loadAndApply().requireDatabaseURL(for: "roost alerts")
        let subject = message.map { AlertTrace.Subject.message($0) } ?? .user(user ?? "")
        let entries = try RunFailure.wrapping { try AlertTrace.read(subject, limit: limit, conninfo: url) }
        guard !entries.isEmpty else {
            throw RunFailure(
                """
                No alert is remembered of that: no reader has registered a phone, the message is not in one of alerts.tables, or it is \
                too old.
                """, .refused)
        }
        for entry in entries { StandardOutput.writeLine(entry.line) }
    }
}

extension AlertTrace.Entry {
    /// The line to print; times are in UTC.
    var line: String {
        let (words, time) = outcome
        var line = "\(CivilTime(createdAt).day) \(CivilTime(createdAt).clock)  \(message.text)  \(user.text)  \(words)"
        if let time { line += " \(CivilTime(time).clock)" }
        if let explanation { line += ": \(explanation)" }
        if let phones { line += " (\(phones))" }
        return line
    }

    /// The outcome in words, and a time that ends the sentence, in milliseconds since 1970; nil if it needs none.
    var outcome: (words: String, time: Int64?) {
        switch state {
        case "taken": phones == nil ? ("no phone to send it to", nil) : ("sent at", at)
        case "dropped": ("not sent", nil)
        case "expired": ("too late to be sent", nil)
        case "due": ("to be sent", nil)
        case "held": ("undecided until", at)
        case "elsewhere": ("waits for another hub until", at)
        default: (state, nil)
        }
    }

    /// The reason in words; nil if an older hub gave none.
    var explanation: String? { reason.map { AlertReason(rawValue: $0)?.sentence ?? $0 } }
}

extension CivilTime {
    fileprivate init(_ milliseconds: Int64) { self.init(millisecondsSince1970: Int(milliseconds)) }
}

extension AlertReason {
    /// The reason in words, for display.
    var sentence: String {
        switch self {
        case .away: "the user had no socket"
        case .grace: "the user was cut off and may come back"
        case .unproven: "the app had it on its way and did not prove that it arrived"
        case .lost: "the app's socket ended before it proved that it arrived"
        case .unheard: "no app of the user's had the conversation open"
        case .hidden: "no app of the user's was on the screen"
        case .shown: "an app on the screen proved that it arrived"
        case .received: "an app proved that it arrived"
        case .connected: "the user had an open socket, which is enough for alerts.when: away"
        case .read: "the user had read it elsewhere"
        case .always: "it is for whoever it names, connected or not"
        case .returned: "the user opened the app while the alert could not be sent"
        }
    }
}

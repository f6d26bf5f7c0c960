import ArgumentParser

struct ChangesCommand: LoadCommand {
    static let configuration = CommandConfiguration(
        commandName: "changes",
        abstract: "Insert rows at a fixed rate and measure commit → client.",
        discussion: """
            Every subscriber joins `realtime:conversation:<uuid>` with an INSERT filter on that conversation. Latency \
            counts from the moment the commit returned, and again from the moment the insert was due, so that a slow \
            database does not hide behind itself. Every delivery is matched with its insert: lost, repeated and \
            reordered ones fail the test. The table needs the columns `conversation_id uuid` and `stamp text`, or give \
            --insert and --filter-column; it must be watched (`roost watch`). With --tokens every subscriber is a user \
            of its own, as row level security sees it; --run determines in advance which conversations there will be.
            """
    )

    @OptionGroup(title: "Target")
    var target: TargetOptions

    @OptionGroup(title: "Rows")
    var rows: RowOptions

    @OptionGroup(title: "Report")
    var report: ReportOptions

    @Option(
        name: [.customLong("subscribers"), .customLong("sockets")],
        help: ArgumentHelp("How many sockets.", valueName: "count"))
    var subscribers = 1000

    @Option(
        name: .customLong("conversations"),
        help: ArgumentHelp(
            "How many conversations they are spread over; default: 100, or as many as there are sockets.",
            valueName: "count"))
    var wantedConversations: Int?

    private var conversations: Int { wantedConversations ?? min(100, subscribers) }

    @Option(help: ArgumentHelp("Commits per second, all conversations together.", valueName: "number"))
    var rate = 500.0

    @Option(help: ArgumentHelp("How long to write.", valueName: "seconds"))
    var duration = 10.0

    @Option(help: ArgumentHelp("How long to write before that, unmeasured.", valueName: "seconds"))
    var warmUp = 0.0

    func validate() throws {
        guard subscribers > 0, conversations > 0, rate > 0, duration > 0, warmUp >= 0 else {
            throw ValidationError("--sockets, --conversations, --rate and --duration must be over 0.")
        }
        guard subscribers >= conversations else {
            throw ValidationError(
                "Each conversation needs a socket that receives it, and \(subscribers) sockets are too few for "
                    + "\(conversations) conversations; give --sockets \(conversations) or --conversations "
                    + "\(subscribers)."
            )
        }
    }

    func plan() throws -> LoadPlan {
        var plan = try target.plan(.changes, sockets: subscribers, run: rows.runNumber)
        plan.channels = conversations
        plan.rate = rate
        (plan.seconds, plan.warmUp, plan.settle) = (duration, warmUp, rows.settle)
        plan.rows = try rows.plan(sockets: subscribers)
        return plan
    }
}

struct ChatCommand: LoadCommand {
    static let configuration = CommandConfiguration(
        commandName: "chat",
        abstract: "Conversations: rows through Postgres, typing, read receipts, presence, people who come and go.",
        discussion: """
            The sockets are the members of conversations and receive their rows. Each row's author types for a moment \
            before it, some readers confirm it by a broadcast some time later. Everybody tracks their presence; some \
            leave and come back. Rows and receipts are checked one by one: every member that is there has to get each \
            once and in order. The table is that of `changes`.
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

    @Option(help: ArgumentHelp("How long to measure.", valueName: "seconds"))
    var duration = 30.0

    func validate() throws {
        guard duration > 0 else { throw ValidationError("--duration must be over 0.") }
    }

    func plan() throws -> LoadPlan { try chat.plan(.chat, target, rows, duration: duration) }
}

struct SoakCommand: LoadCommand {
    static let configuration = CommandConfiguration(
        commandName: "soak",
        abstract: "The conversations of `chat` for a long time: does memory stay flat, does latency stay low?",
        discussion: """
            Besides what `chat` checks, the memory of each --pid must not grow: a line is fitted to its second half \
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

    @Option(help: ArgumentHelp("How long to measure.", valueName: "seconds"))
    var duration = 1800.0

    @Option(help: ArgumentHelp("How much memory may grow over the second half.", valueName: "percent"))
    var memoryTolerance = 5.0

    func validate() throws {
        guard duration > 0, memoryTolerance >= 0 else {
            throw ValidationError("--duration must be over 0, and --memory-tolerance must not be negative.")
        }
    }

    func plan() throws -> LoadPlan { try chat.plan(.soak, target, rows, duration: duration) }
}

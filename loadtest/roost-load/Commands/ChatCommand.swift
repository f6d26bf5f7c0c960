import ArgumentParser

struct ChatCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "chat",
        abstract: "Conversations: rows through Postgres, typing, read receipts, presence, people who come and go.",
        discussion: """
            The sockets are the members of conversations, of which they hear the rows. Each row's author types for a \
            moment before it, some readers confirm it by a broadcast some time after. Everybody tracks their presence; \
            some leave and come back. Rows and receipts are checked one by one: whoever is there has to get each once \
            and in order. The table is that of `changes`.
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
    var duration = 30.0

    func validate() throws {
        guard duration > 0 else { throw ValidationError("--duration must be over 0.") }
    }

    func run() throws {
        let plan = try chat.plan(.chat, target, rows, duration: duration)
        try LoadRun(plan: plan, target: target, report: report).run()
    }
}

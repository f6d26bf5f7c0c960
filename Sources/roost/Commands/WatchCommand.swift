import Administration
import ArgumentParser
import Settings

struct WatchCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "watch",
        abstract: "Follow a table's changes, or those of every table of a publication.",
        discussion: """
            Puts Roost's triggers on the table or, if feed.capture is wal, puts it into the publication `roost`, which \
            a hub reads from the WAL. From then on clients can subscribe to it. A table that is captured the other way \
            is switched over, even while it is written to. Examples: `roost watch public.messages`, `roost watch \
            --publication supabase_realtime`. Triggers that were disabled are enabled again.

            With row level security, it finds out from the policies which columns decide who may see a row (the \
            scope), and which tables they read; those are watched too. The hub then asks the policies once for each \
            user and value of the columns, and not for each row. If that cannot be found out, it says why. --no-scope \
            turns this off.

            --scope declares one by hand, for policies that cannot be read: who may see a row depends on one of its \
            columns only, as long as the tables that --members names do not change. A scope that the policies \
            contradict is refused; what a function in them hides, `roost doctor` looks for on sample rows. Example: \
            `roost watch messages --scope conversation_id --members conversation_participants`.
            """
    )

    @Argument(help: "The table, as SQL writes it: messages, public.messages, \"Chat\".\"Messages\".")
    var table: String?

    @Option(help: ArgumentHelp("Watch every table of this publication.", valueName: "name"))
    var publication: String?

    @Option(help: ArgumentHelp("The column that visibility depends on; replaces an earlier one.", valueName: "column"))
    var scope: String?

    @Option(
        parsing: .singleValue,
        help: ArgumentHelp("The tables the scope rests on, separated by commas; may be repeated.", valueName: "tables"))
    var members: [String] = []

    @Flag(help: "Have no scope: none is derived, and one that was declared is forgotten.")
    var noScope = false

    @OptionGroup
    var patience: WaitOption

    @OptionGroup(title: "Configuration")
    var options: ConfigurationOptions

    func validate() throws {
        if (table == nil) == (publication == nil) {
            throw ValidationError("Name one thing to watch: a table, or a publication with --publication.")
        }
        if table == nil, scope != nil {
            throw ValidationError("A scope belongs to one table; name it instead of a publication.")
        }
        if scope != nil, noScope {
            throw ValidationError("--scope declares what --no-scope forgets; use one of them.")
        }
        if (scope == nil) != ScopeChange.splitNames(in: members).isEmpty {
            throw ValidationError("--scope COLUMN and --members TABLE[,TABLE…] go together: visibility rests on both.")
        }
    }

    func run() async throws {
        let configuration = try options.loadAndApply()
        let watch = TableWatch(
            url: try configuration.requireDatabaseURL(for: "roost watch"), wait: patience.wait,
            capture: configuration.captureMethod)
        if let table {
            try watch.watch(table: table, scope: change)
        } else if let publication {
            try watch.watch(publication: publication, derivesScopes: !noScope)
        }
    }

    private var change: ScopeChange {
        if let scope { return .declare(column: scope, members: ScopeChange.splitNames(in: members)) }
        return noScope ? .remove : .derive
    }
}

struct UnwatchCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "unwatch",
        abstract: "Stop following a table's changes.",
        discussion: """
            Takes Roost's triggers off the table, takes it out of the publication `roost`, and forgets its scope. Its \
            subscribers stay connected and get no more of its changes. A table that another's scope rests on stays \
            watched.
            """
    )

    @Argument(help: "The table, as SQL writes it: messages, public.messages, \"Chat\".\"Messages\".")
    var table: String

    @OptionGroup
    var patience: WaitOption

    @OptionGroup(title: "Configuration")
    var options: ConfigurationOptions

    func run() async throws {
        let url = try options.loadAndApply().requireDatabaseURL(for: "roost unwatch")
        try TableWatch(url: url, wait: patience.wait).unwatch(table: table)
    }
}

/// The time for which a command tries if tables are in use.
struct WaitOption: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "How long to try for a table that is in use. The tries are short, so that writers do not queue up behind "
                + "them.", valueName: "seconds"))
    var wait = 60

    func validate() throws {
        guard (0...86_400).contains(wait) else { throw ValidationError("--wait is 0 to 86400 seconds.") }
    }
}

/// Starts or ends the capture of tables, for `roost watch` and `roost unwatch`, and prints the outcome for each.
struct TableWatch {
    let url: String
    /// The time to keep trying if a table is in use, in seconds.
    let wait: Int
    /// The method of capture for watched tables.
    var capture = CaptureMethod.triggers

    private var patience: LockPatience { LockPatience(total: .seconds(wait)) }

    func watch(table: String, scope: ScopeChange) throws {
        let outcome = try showingProgress {
            try Watcher.watch(table, scope: scope, capture: capture, conninfo: url, patience: patience, progress: $0)
        }
        for member in outcome.members { printOutcome(member, verb: "watched") }
        printOutcome(outcome, verb: "watched")
        try demandReaders(of: [outcome])
    }

    func watch(publication: String, derivesScopes: Bool) throws {
        let outcomes = try showingProgress {
            try Watcher.watch(
                publication: publication, derivesScopes: derivesScopes, capture: capture, conninfo: url,
                patience: patience, progress: $0)
        }
        for outcome in outcomes {
            for member in outcome.members where !member.changed.isEmpty { printOutcome(member, verb: "watched") }
            printOutcome(outcome, verb: "watched")
        }
        try demandReaders(of: outcomes)
    }

    /// A watched table that no client can read is a failure.
    private func demandReaders(of outcomes: [Watcher.Outcome]) throws {
        let failures = outcomes.flatMap(\.failures)
        if !failures.isEmpty { throw RunFailure(failures.joined(separator: "\n"), .refused) }
    }

    func unwatch(table: String) throws {
        let outcome = try showingProgress {
            try Watcher.unwatch(table, conninfo: url, patience: patience, progress: $0)
        }
        printOutcome(outcome, verb: "not watched")
    }

    private func showingProgress<Outcome>(_ body: (@escaping AdminProgress.Listener) throws -> Outcome) throws
        -> Outcome
    {
        let line = ProgressLine()
        return try line.during { try RunFailure.wrapping { try body(line.showProgress) } }
    }

    private func printOutcome(_ outcome: Watcher.Outcome, verb: String) {
        let again = outcome.changed.isEmpty ? "already" : "now"
        let visibility = outcome.scope.map { "; \($0.sentence)" } ?? "."
        StandardOutput.writeLine("\(outcome.table) is \(verb) \(again)\(visibility)")
        for note in outcome.notes { StandardOutput.writeLine(note) }
        // If policies fail, their speed does not matter.
        guard !outcome.obstacles.isEmpty, outcome.failures.isEmpty else { return }
        StandardOutput.writeLine(
            "Policies of \(outcome.table) are asked about each row by itself, which is correct but slower, as "
                + "\(outcome.obstacles.joined(separator: "; ")).")
    }
}

extension ScopeOutcome {
    /// The scope's effect and its conditions, with a full stop.
    fileprivate var sentence: String {
        if !problems.isEmpty {
            return "its scope \(column) is not used, as \(problems.joined(separator: "; "))."
        }
        if !hasRowSecurity {
            return "its scope \(column) changes nothing until it has row level security, as everybody sees every row."
        }
        if isDerived, members.isEmpty { return "visibility by \(column), as its policies say." }
        let rest = members.isEmpty ? "the table itself" : members
        return
            "visibility by \(column), \(isDerived ? "as its policies say, " : "")as long as \(rest) \(rest.contains(", ") ? "do" : "does") not change."
    }
}

extension RoostConfiguration {
    /// `feed.capture`, for commands that work on a database.
    var captureMethod: CaptureMethod { capturesFromWAL ? .wal : .triggers }
}

import ArgumentParser

/// The database and the table that rows go into.
struct RowOptions: ParsableArguments {
    @Option(help: ArgumentHelp("The database, as libpq understands it.", valueName: "conninfo"))
    var database: String

    @Option(help: ArgumentHelp("The table.", valueName: "schema.table"))
    var table = "public.roost_load"

    @Option(help: ArgumentHelp("The column that the conversation's id is in.", valueName: "column"))
    var filterColumn = "conversation_id"

    @Option(
        help: ArgumentHelp("The insert: $1 is the conversation, $2 a text of at most 40 characters.", valueName: "sql"))
    var insert: String?

    @Option(help: ArgumentHelp("Sessions that write; each conversation belongs to one.", valueName: "count"))
    var writers = 4

    @Option(help: ArgumentHelp("How long to wait for the last deliveries.", valueName: "seconds"))
    var settle = 10.0

    @Option(help: ArgumentHelp("A file of tokens, one a line: subscriber n joins with line n.", valueName: "file"))
    var tokens: String?

    @Option(
        name: .customLong("run"),
        help: ArgumentHelp(
            "The conversations are RUN-0000-4000-8000-N: a number in 8 hex digits, and N in 12 from 0; default: random.",
            valueName: "number"))
    var runNumber: UInt32?

    func validate() throws {
        guard writers > 0, settle >= 0 else {
            throw ValidationError(
                "--writers must be over 0, and --settle must not be negative.")
        }
        guard table.split(separator: ".").count == 2 else {
            throw ValidationError("--table takes schema.table; \(table) is not that.")
        }
    }

    func plan(sockets: Int) throws -> RowPlan {
        let name = table.split(separator: ".").map(String.init)
        return RowPlan(
            conninfo: database, schema: name[0], table: name[1], filterColumn: filterColumn,
            insert: insert ?? "insert into \(table) (\(filterColumn), stamp) values ($1, $2)", writers: writers,
            tokens: try tokens.map { try TokenList(path: $0, subscribers: sockets).tokens } ?? [])
    }
}

/// People in conversations.
struct ChatOptions: ParsableArguments {
    @Option(help: ArgumentHelp("How many sockets.", valueName: "count"))
    var sockets = 1000

    @Option(help: ArgumentHelp("Sockets in a conversation.", valueName: "count"))
    var members = 10

    @Option(help: ArgumentHelp("Conversations that each socket is in.", valueName: "count"))
    var conversationsPerSocket = 1

    @Option(help: ArgumentHelp("Rows a second, all conversations together.", valueName: "number"))
    var rate = 50.0

    @Option(help: ArgumentHelp("The share of a row's readers that send a read receipt.", valueName: "0…1"))
    var readers = 0.3

    @Option(help: ArgumentHelp("The share of the sockets that leaves and comes back in a minute.", valueName: "share"))
    var churn = 0.05

    @Flag(inversion: .prefixedNo, help: "Whether the author of a row is seen typing before it.")
    var typing = true

    @Flag(inversion: .prefixedNo, help: "Whether sockets track their presence.")
    var presence = true

    @Option(help: ArgumentHelp("How long to run before measuring.", valueName: "seconds"))
    var warmUp = 2.0

    func validate() throws {
        guard sockets > 0, rate > 0, members > 0, members <= sockets, warmUp >= 0, churn >= 0 else {
            throw ValidationError("Counts and --rate must be over 0, and --members must not be more than --sockets.")
        }
        guard members <= 1000 else {
            throw ValidationError("--members is at most 1000: each receives each, one by one.")
        }
        guard (0...1).contains(readers) else { throw ValidationError("--readers is a share from 0 to 1.") }
        guard conversationsPerSocket > 0 else { throw ValidationError("--conversations-per-socket must be over 0.") }
    }

    func plan(_ scenario: Scenario, _ target: TargetOptions, _ rows: RowOptions, duration: Double) throws -> LoadPlan {
        var plan = try target.plan(scenario, sockets: sockets, run: rows.runNumber)
        plan.rate = rate
        (plan.seconds, plan.warmUp, plan.settle) = (duration, warmUp, rows.settle)
        plan.rows = try rows.plan(sockets: sockets)
        plan.chat = ChatPlan(
            members: members, conversationsPerSocket: conversationsPerSocket, types: typing, readers: readers,
            tracksPresence: presence, churn: churn)
        return plan
    }
}

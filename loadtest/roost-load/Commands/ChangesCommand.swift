import ArgumentParser
import Wire

struct ChangesCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "changes",
        abstract: "Insert rows at a fixed rate and measure commit → client.",
        discussion: """
            Every subscriber joins `realtime:conversation:<uuid>` with an INSERT filter on that conversation. Latency \
            counts from the moment the commit returned, and again from the moment the insert was due, so that a slow \
            database does not hide behind itself. Every delivery is matched with its insert: lost, repeated and \
            reordered ones fail the test. The table needs the columns `conversation_id uuid` and `stamp text`, or give \
            --insert and --filter-column; it must be watched (`roost watch`). With --tokens every subscriber is a user of \
            its own, as row level security sees it; --run says beforehand which conversations there will be.
            """
    )

    @OptionGroup(title: "Target")
    var target: TargetOptions

    @Option(help: ArgumentHelp("The database, as libpq understands it.", valueName: "conninfo"))
    var database: String

    @Option(help: ArgumentHelp("The table.", valueName: "schema.table"))
    var table = "public.roost_load"

    @Option(help: ArgumentHelp("The column that the conversation's id is in.", valueName: "column"))
    var filterColumn = "conversation_id"

    @Option(
        help: ArgumentHelp("The insert, $1 the conversation, $2 a text of at most 40 characters.", valueName: "sql"))
    var insert: String?

    @Option(help: ArgumentHelp("How many sockets.", valueName: "count"))
    var subscribers = 1000

    @Option(help: ArgumentHelp("How many conversations they are spread over.", valueName: "count"))
    var conversations = 100

    @Option(help: ArgumentHelp("Commits per second, all conversations together.", valueName: "number"))
    var rate = 500.0

    @Option(help: ArgumentHelp("How long to write.", valueName: "seconds"))
    var duration = 10.0

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

    @Option(help: ArgumentHelp("A bound on commit → client, as p99<10ms; may be repeated.", valueName: "bound"))
    var expect: [Expectation] = []

    func validate() throws {
        guard subscribers >= conversations, conversations > 0, writers > 0, rate > 0, duration > 0 else {
            throw ValidationError(
                "Every conversation needs a subscriber, and counts, --rate and --duration must be over 0.")
        }
    }

    func run() throws {
        let report = try test().run()
        let misses = report.misses(expect)
        print(target.json ? report.json(misses) : report.text)
        guard misses.isEmpty else {
            StandardError.write(misses.map { "Failed: \($0).\n" }.joined())
            throw ExitCode(1)
        }
    }

    private func test() throws -> ChangesTest {
        let plan = ChangesPlan(
            subscribers: subscribers, conversations: conversations, rate: rate, seconds: duration,
            run: runNumber ?? .random(in: 1 ... .max))
        let bearers = try tokens.map { try TokenList(path: $0, subscribers: subscribers) }
        let name = table.split(separator: ".")
        guard name.count == 2 else { throw LoadFailure("--table takes schema.table; \(table) is not that.") }
        let (schema, relation, column) = (Self.quoted(name[0]), Self.quoted(name[1]), filterColumn)
        return ChangesTest(
            plan: plan,
            fleet: FleetPlan(
                count: subscribers, endpoint: try target.endpoint(), ramp: target.ramp,
                heartbeatSeconds: target.heartbeat, awaitsSubscription: true,
                join: { slot in
                    let uuid = plan.uuid(of: plan.conversation(ofSlot: slot))
                    let filter = Self.quoted("\(column)=eq.\(uuid)")
                    return #"["1","1","realtime:conversation:\#(uuid)","phx_join",{"config":{"postgres_changes":[{"#
                        + #""event":"INSERT","schema":\#(schema),"table":\#(relation),"filter":\#(filter)}]}"#
                        + "\(bearers?.member(ofSlot: slot) ?? "")}]"
                }),
            conninfo: database,
            insert: insert ?? "insert into \(table) (\(column), stamp) values ($1, $2)",
            writers: writers, settle: settle, processes: target.processes)
    }

    private static func quoted(_ text: some StringProtocol) -> String {
        String(decoding: JSONString.encode(text), as: UTF8.self)
    }
}

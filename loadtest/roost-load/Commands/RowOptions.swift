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
        help: ArgumentHelp("The insert, $1 the conversation, $2 a text of at most 40 characters.", valueName: "sql"))
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
        guard writers > 0, settle >= 0 else { throw ValidationError("--writers must be over 0, --settle not below.") }
        guard table.split(separator: ".").count == 2 else {
            throw ValidationError("--table takes schema.table; \(table) is not that.")
        }
    }

    func terms(sockets: Int) throws -> RowTerms {
        let name = table.split(separator: ".").map(String.init)
        return RowTerms(
            conninfo: database, schema: name[0], table: name[1], filterColumn: filterColumn,
            insert: insert ?? "insert into \(table) (\(filterColumn), stamp) values ($1, $2)", writers: writers,
            bearers: try tokens.map { try TokenList(path: $0, subscribers: sockets).tokens } ?? [])
    }
}

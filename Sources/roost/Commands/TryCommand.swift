import Administration
import ArgumentParser
import Glibc
import Settings

struct TryCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "try",
        abstract: "Prepare a database for tables of your choice, and say how to go on.",
        usage: "roost try [<database-url>] <table> ... [--anon] [--yes]",
        discussion: """
            Does what `roost migrate`, `roost init`, `roost watch` and `roost doctor` do, in this order, once you have \
            seen what that will be and said yes. Prints then what to paste to start a hub, to hear the tables, and a \
            token to try it with. Safe to repeat. Example: `roost try postgres://postgres@127.0.0.1/app public.messages`.
            """
    )

    @Argument(
        help: ArgumentHelp(
            "The database, if it is not that of the configuration, and the tables whose changes clients are to hear.",
            valueName: "table"))
    var names: [String] = []

    @Flag(help: "Also let anon, the role of visitors who are not signed in, read the tables.")
    var anon = false

    @Flag(help: "Do it without asking.")
    var yes = false

    @OptionGroup
    var patience: WaitOption

    @OptionGroup(title: "Configuration")
    var options: ConfigurationOptions

    func run() async throws {
        var options = options
        let urls = names.filter { $0.contains("://") }
        if let url = urls.first { options.databaseURL = url }
        let trial = try DatabaseTrial(
            options, tables: names.filter { !urls.contains($0) }, includesVisitors: anon, wait: patience.wait)
        try trial.demandTables()
        StandardOutput.writeLine(try trial.announcement())
        guard yes || Self.isAgreed() else {
            throw RunFailure("Nothing was changed. Answer y, or pass --yes, to do it.", .refused)
        }
        let isHealthy = try await trial.run()
        StandardOutput.writeLine(try trial.continuation())
        if !isHealthy { throw ExitCode(ExitStatus.unavailable.rawValue) }
    }

    private static func isAgreed() -> Bool {
        StandardError.write("Go on? [y/N] ")
        return ["y", "yes"].contains((readLine() ?? "").lowercased())
    }
}

/// The changes that `roost try` makes to a database, one command after the other.
struct DatabaseTrial {
    private let configuration: RoostConfiguration
    private let url: String
    private let tables: [String]
    private let request: ClientRoles.Request
    /// The time to keep trying if a table is in use, in seconds.
    private let wait: Int
    /// The lines that a shell needs before the next command, for settings that were not configured before.
    private var exports: [String] = []

    init(_ given: ConfigurationOptions, tables: [String], includesVisitors: Bool, wait: Int) throws {
        var options = given
        if let url = given.databaseURL { exports.append("export ROOST_DATABASE_URL=" + ShellArgument.quoted(url)) }
        do throws(ConfigurationError) {
            try options.readLayers().requireKeys(for: "roost try")
        } catch {
            let secret = Self.makeSecret()
            options.jwtSecret = secret
            exports.append("export ROOST_JWT_SECRET=" + secret)
        }
        configuration = try options.loadAndApply()
        url = try configuration.requireDatabaseURL(for: "roost try")
        self.tables = tables
        self.wait = wait
        request = ClientRoles.Request(tables: tables, includesVisitors: includesVisitors)
    }

    /// - Throws: `RunFailure` with the tables of the database if none is named.
    func demandTables() throws {
        guard tables.isEmpty else { return }
        let found = try RunFailure.wrapping { try Watcher.candidates(conninfo: url) }
        let list =
            found.isEmpty
            ? "This database has no table of yours yet." : "This database has \(found.joined(separator: ", "))."
        throw RunFailure(
            "Name the tables whose changes clients are to hear, such as `roost try public.messages`. \(list)", .usage)
    }

    /// Describes the planned changes without making any.
    /// - Throws: `RunFailure`, also if the role lacks the rights for them.
    func announcement() throws -> String {
        let plan = try RunFailure.wrapping { try ClientRoles.plan(request, conninfo: url) }
        if let obstacle = plan.obstacle, !plan.statements.isEmpty {
            throw RunFailure(
                "\(plan.user) may not make what clients need, because \(obstacle). Have an administrator of the database "
                    + "run what `roost init` prints for the same tables, and try again.")
        }
        let roles =
            plan.statements.isEmpty
            ? "- run no SQL for clients' roles, which may read the tables already"
            : "- run, so that clients' roles may read the tables:\n\n"
                + plan.statements.map { "    \($0);" }.joined(separator: "\n") + "\n"
        return """
            This will

            - bring the schema `roost` up to date (`roost migrate --print` shows the SQL)
            \(roles)
            - have changes of \(tables.joined(separator: ", ")) captured (`roost unwatch` ends that)

            \(plan.notes.joined(separator: "\n"))
            """
    }

    /// Returns true if `roost doctor` then finds nothing wrong.
    func run() async throws -> Bool {
        try SchemaMigration(url: url, wait: wait).runMigration()
        _ = try RunFailure.wrapping { try ClientRoles.createRoles(request, conninfo: url) }
        let watch = TableWatch(url: url, wait: wait, capture: configuration.captureMethod)
        for table in tables { try watch.watch(table: table, scope: .derive) }
        return try await Examination(configuration).runChecks(json: false)
    }

    /// Returns the commands to paste next.
    func continuation() throws -> String {
        let before = exports.map { "    \($0)\n" }.joined()
        let token = try configuration.jwtSecret.map {
            try DevelopmentToken(role: "authenticated", subject: "11111111-1111-4111-8111-111111111111", lifetime: 3600)
                .signed(with: $0)
        }
        return """

            To start a hub:

            \(before)    roost serve

            To hear the changes, in another terminal:

            \(before)    roost tail my-channel --table \(ShellArgument.quoted(tables[0]))

            Clients connect to ws://\(configuration.httpHost):\(configuration.httpPort)/realtime/v1\
            \(token.map { " with a token, such as this one of a user, for an hour:\n\n    \($0)" } ?? " with a token of yours.")
            """
    }

    /// Makes a secret like those of `openssl rand -hex 32`.
    private static func makeSecret() -> String {
        (0..<32).map { _ in
            let byte = String(UInt8.random(in: 0...255), radix: 16)
            return byte.count == 1 ? "0" + byte : byte
        }.joined()
    }
}

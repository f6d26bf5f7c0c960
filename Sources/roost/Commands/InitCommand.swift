import Administration
import ArgumentParser
import Settings

struct InitCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "init",
        abstract: "Create the roles that clients' tokens name, and let them read tables.",
        discussion: """
            Prints the SQL for what is missing: the roles anon, authenticated and service_role, the hub's right to \
            become them, and, for the named tables, SELECT for authenticated and service_role, with USAGE on their \
            schemas. --yes runs it in one transaction. It is safe to repeat.

            Supabase databases have the roles already. Row level security decides which rows of a table a user sees. \
            Examples: `roost init`, `roost init public.messages public.members --yes`.
            """
    )

    @Argument(help: "Tables that signed-in users may read, as SQL writes them: messages, public.messages.")
    var tables: [String] = []

    @Flag(help: "Run the SQL.")
    var yes = false

    @Flag(help: "Also let anon, the role of visitors who are not signed in, read the tables.")
    var anon = false

    @Option(
        help: ArgumentHelp("The role that the hub connects as, if it is not this command's.", valueName: "name"))
    var hubRole: String?

    @OptionGroup(title: "Configuration")
    var options: ConfigurationOptions

    func run() async throws {
        let url = try options.loadAndApply().requireDatabaseURL(for: "roost init")
        let request = ClientRoles.Request(tables: tables, hub: hubRole, includesVisitors: anon)
        let plan = try RunFailure.wrapping {
            try yes ? ClientRoles.createRoles(request, conninfo: url) : ClientRoles.plan(request, conninfo: url)
        }
        StandardOutput.writeLine(planText(plan))
    }

    /// Always a valid script, so that it can be piped to psql.
    private func planText(_ plan: ClientRoles.Plan) -> String {
        let notes = plan.notes.map { "-- \($0)" }
        guard !plan.statements.isEmpty else {
            return (["-- Nothing is missing."] + notes).joined(separator: "\n")
        }
        let end = yes ? "-- Done. `roost doctor` looks at all of it." : "-- Nothing was run. To run it: \(command)"
        return plan.script + (notes + obstacleNotes(plan) + [end]).joined(separator: "\n")
    }

    private func obstacleNotes(_ plan: ClientRoles.Plan) -> [String] {
        plan.obstacle.map {
            ["-- \(plan.user) may not run this, because \($0); have an administrator of the database run it."]
        } ?? []
    }

    /// The command as typed, with --yes.
    private var command: String {
        let words =
            ["roost", "init"] + tables.map(ShellArgument.quoted) + (anon ? ["--anon"] : [])
            + (hubRole.map { ["--hub-role", ShellArgument.quoted($0)] } ?? []) + ["--yes"]
        return words.joined(separator: " ")
    }
}

import ArgumentParser

/// How long a command tries for tables that are in use.
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

import ArgumentParser
import Hub
import Settings

struct DoctorCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor",
        abstract: "Check what the hub needs, and say what to do about what is missing.",
        discussion: """
            Looks at the machine (the event loop's package, open files, io_uring, the kernel's queues, the clock), the \
            certificate, the token keys, the database (reachable, version, rights, schema, a pooler in between, sessions that are free, \
            long transactions, standbys, the outbox, triggers, other hubs of the same name, the roles of clients, \
            messages from SQL, policies), and whether Apple takes the key for pushes. Holds declared scopes against the \
            policies, and against what users see of sample rows, in a transaction that is rolled back. Ends with 0 where \
            all is well, 69 where something is not; warnings do not count. Run it where the hub runs.
            """
    )

    @Flag(help: "Print the findings as one JSON object, with the numbers of errors and warnings.")
    var json = false

    @Option(
        help: ArgumentHelp("Send a test push to this phone, too.", valueName: "hex"),
        transform: { text in
            guard let token = PushToken(text) else { throw ValidationError("a token in hexadecimal is expected.") }
            return token
        })
    var pushToken: PushToken?

    @OptionGroup(title: "Configuration")
    var options: ConfigurationOptions

    func run() async throws {
        let isHealthy = try await Examination(options.load(), pushToken: pushToken).run(json: json)
        if !isHealthy { throw ExitCode(ExitStatus.unavailable.rawValue) }
    }
}

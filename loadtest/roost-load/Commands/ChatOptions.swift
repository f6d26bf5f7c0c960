import ArgumentParser

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

    @Option(help: ArgumentHelp("How long it goes on before it is measured.", valueName: "seconds"))
    var warmUp = 2.0

    func validate() throws {
        guard sockets > 0, rate > 0, members > 0, members <= sockets, warmUp >= 0, churn >= 0 else {
            throw ValidationError("Counts and --rate must be over 0, --members no more than --sockets.")
        }
        guard members <= 1000 else { throw ValidationError("--members is at most 1000: each hears each, one by one.") }
        guard (0...1).contains(readers) else { throw ValidationError("--readers is a share from 0 to 1.") }
        guard conversationsPerSocket > 0 else { throw ValidationError("--conversations-per-socket must be over 0.") }
    }

    func plan(_ scenario: Scenario, _ target: TargetOptions, _ rows: RowOptions, duration: Double) throws -> LoadPlan {
        var plan = try target.plan(scenario, sockets: sockets, run: rows.runNumber)
        plan.rate = rate
        (plan.seconds, plan.warmUp, plan.settle) = (duration, warmUp, rows.settle)
        plan.rows = try rows.terms(sockets: sockets)
        plan.chat = ChatTerms(
            members: members, conversationsPerSocket: conversationsPerSocket, types: typing, readers: readers,
            tracksPresence: presence, churn: churn)
        return plan
    }
}

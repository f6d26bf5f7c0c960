import ArgumentParser

/// A scenario's command: options that make a plan. All of them are run, and reported, in the same way.
protocol LoadCommand: ParsableCommand {
    var target: TargetOptions { get }
    var report: ReportOptions { get }

    /// By how much memory may grow in the second half of a soak, in percent.
    var memoryTolerance: Double { get }

    /// What is to be done; the number of workers is not decided yet.
    func plan() throws -> LoadPlan
}

extension LoadCommand {
    var memoryTolerance: Double { 5 }

    func run() throws {
        var plan = try plan()
        plan.workers = try workers(plan)
        try report.checkFiles()
        let mode = Progress.Mode.suited(quiet: report.quiet)
        let findings = try Coordinator(plan, processes: target.processes, mode: mode).run()
        try report.show(
            findings.record(command: typed, expectations: report.expect, memoryTolerance: memoryTolerance))
    }

    private func workers(_ plan: LoadPlan) throws -> Int {
        let most = FileLimit.socketsPerProcess
        let needed = (plan.sockets + plan.publishers + most - 1) / most
        let useful = plan.scenario.hasConversations && plan.chat.members == 0 ? plan.channels : plan.sockets
        guard needed <= useful else {
            throw LoadFailure("A conversation lives in one process, which may have \(most) sockets (ulimit -Hn).")
        }
        return min(max(1, target.workers == 0 ? needed : target.workers), useful)
    }

    /// What was typed, without what may be a secret.
    private var typed: [String] {
        let secrets = ["--token", "--database"]
        var hides = false
        return CommandLine.arguments.map { argument in
            defer { hides = secrets.contains(argument) }
            if hides { return "…" }
            return secrets.first { argument.hasPrefix($0 + "=") }.map { "\($0)=…" } ?? argument
        }
    }
}

/// A part of a run, in a process of its own: `roost-load` starts it.
struct WorkerCommand: ParsableCommand {
    static let configuration = CommandConfiguration(commandName: "worker", shouldDisplay: false)

    func run() throws { try WorkerProcess.run() }
}

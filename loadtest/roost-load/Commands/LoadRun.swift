import ArgumentParser

/// What all scenarios' commands do once they have a plan.
struct LoadRun {
    var plan: LoadPlan
    let target: TargetOptions
    let report: ReportOptions
    /// By how much memory may grow in the second half of a soak, in percent.
    var memoryTolerance = 5.0

    func run() throws {
        var plan = plan
        plan.workers = try workers
        try report.checkFiles()
        let mode = Progress.Mode.suited(quiet: report.quiet)
        let findings = try Coordinator(plan, processes: target.processes, mode: mode).run()
        try report.show(
            findings.record(command: command, expectations: report.expect, memoryTolerance: memoryTolerance))
    }

    private var workers: Int {
        get throws {
            let most = OpenFiles.socketsPerProcess
            let needed = (plan.sockets + plan.publishers + most - 1) / most
            let useful = plan.scenario.hasConversations && plan.chat.members == 0 ? plan.channels : plan.sockets
            guard needed <= useful else {
                throw LoadFailure("A conversation lives in one process, which may have \(most) sockets (ulimit -Hn).")
            }
            return min(max(1, target.workers == 0 ? needed : target.workers), useful)
        }
    }

    /// What was typed, without what may be a secret.
    private var command: [String] {
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

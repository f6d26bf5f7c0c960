import ArgumentParser

/// A part of a run, in a process of its own: `roost-load` starts it.
struct WorkerCommand: ParsableCommand {
    static let configuration = CommandConfiguration(commandName: "worker", shouldDisplay: false)

    func run() throws { try WorkerProcess.run() }
}

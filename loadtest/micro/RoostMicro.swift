import ArgumentParser
import Glibc

/// Benchmarks of what the hub does for every frame, change and delivery, without sockets and without Postgres. What is
/// measured is in `Operations/`.
@main
struct RoostMicro: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "roost-micro",
        abstract: "Measure CPU time and allocations of the hub's parts, one operation at a time.",
        discussion: """
            Times are CPU time of the measuring thread, instructions its own outside the kernel. Allocations are counted \
            exactly, and a build makes the same in every run, so --check holds them against a file. Times depend on who \
            else uses the machine, so compare two builds by their instructions.

            Exit status: 0 all is well; 1 --check found a fault; 2 nothing could be measured.
            """
    )

    @Flag(help: "Print JSON.")
    var json = false

    @Flag(help: "Count allocations only, and hold them against the thresholds.")
    var check = false

    @Flag(help: "Count allocations only, and make them the thresholds; comments at the file's head stay.")
    var record = false

    @Option(help: ArgumentHelp("Only operations whose name contains this.", valueName: "text"))
    var filter = ""

    @Option(help: ArgumentHelp("The thresholds.", valueName: "file"))
    var thresholds = "loadtest/micro/thresholds.txt"

    func validate() throws {
        guard !(check && record) else { throw ValidationError("Give either --check or --record.") }
        guard !record || filter.isEmpty else {
            throw ValidationError("--record writes all thresholds anew, so it goes without --filter.")
        }
        guard !json || !(check || record) else { throw ValidationError("--json goes without --check and --record.") }
    }

    static func main() {
        do {
            var command = try parseAsRoot()
            try command.run()
        } catch let failure as MicroFailure {
            var text = "Error: \(failure)\n"
            text.withUTF8 { _ = write(STDERR_FILENO, $0.baseAddress, $0.count) }
            exit(withError: ExitCode(2))
        } catch {
            exit(withError: error)
        }
    }

    func run() throws {
        guard AllocationCount.isAtWork else {
            throw MicroFailure("Allocations are not counted in this build: build roost-micro on Linux with glibc.")
        }
        let operations = Catalogue.all.filter { isWanted($0.name) }
        guard !operations.isEmpty else { throw ValidationError("No operation's name contains \(filter).") }
        let meter = OperationMeter(isTiming: !check && !record)
        let figures = try operations.map(meter.measure)
        if record || check { return try judge(figures) }
        print(json ? FigureJSON(figures: figures).text : FigureTable(figures: figures).text)
    }

    private func isWanted(_ name: String) -> Bool { filter.isEmpty || name.contains(filter) }

    private func judge(_ figures: [OperationCost]) throws {
        let file = TextFile(path: thresholds)
        let known = try Thresholds(parsing: file.read(), path: thresholds)
        if record {
            try file.write(known.renewed(by: figures))
            return print("\(figures.count) thresholds written to \(thresholds).")
        }
        let faults = known.faults(in: figures, where: isWanted)
        guard faults.isEmpty else {
            print(faults.joined(separator: "\n"))
            throw ExitCode(1)
        }
        print("\(figures.count) operations allocate no more than they may.")
        let improved = known.improved(in: figures)
        if !improved.isEmpty { print("Allocate less, and --record keeps it so: \(improved.joined(separator: ", "))") }
    }
}

/// Everything that is measured.
enum Catalogue {
    static var all: [Operation] {
        DecodeOperations.all + EncodeOperations.all + FilterOperations.all + WindowOperations.all
            + PresenceOperations.all + TypingOperations.all + HubOperations.all
    }
}

/// Why nothing could be measured, as one sentence.
struct MicroFailure: Error, CustomStringConvertible {
    let description: String

    init(_ sentence: String) { description = sentence }
}

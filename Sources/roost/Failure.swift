import Demo
import Gateway
import Settings

/// An error that the command line can explain: one sentence with the remedy, and a status for scripts.
protocol Failure: Error {
    var sentence: String { get }
    var status: ExitStatus { get }
}

extension ConfigurationError: Failure {
    var sentence: String { message }
    var status: ExitStatus { .configuration }
}

/// A failure of one of the rooms, in its own sentence.
struct RunFailure: Failure {
    let sentence: String
    let status: ExitStatus

    init(_ sentence: String, _ status: ExitStatus = .unavailable) {
        self.sentence = sentence
        self.status = status
    }

    /// Runs `body` and turns any error of a room into a failure of the command line.
    static func wrapping<Outcome>(_ body: () throws -> Outcome) throws -> Outcome {
        do {
            return try body()
        } catch let failure as any Failure {
            throw failure
        } catch {
            throw RunFailure("\(error)")
        }
    }
}

/// The process's exit status by sysexits.h, so that scripts and service managers can tell failures apart.
enum ExitStatus: Int32 {
    /// The request was refused.
    case refused = 1
    /// The command line is wrong (`EX_USAGE`); ArgumentParser uses it, too.
    case usage = 64
    /// A required resource is missing: the database, a port (`EX_UNAVAILABLE`).
    case unavailable = 69
    /// An internal error (`EX_SOFTWARE`).
    case software = 70
    /// The configuration is wrong (`EX_CONFIG`).
    case configuration = 78
}

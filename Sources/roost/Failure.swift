import Demo
import Gateway
import Settings

/// An error that the command line can explain: one sentence that says what to do, and a status for scripts.
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

    /// Runs `body` and puts whatever a room throws into a failure of the command line.
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

/// How the process ends, as sysexits.h numbers it, so that scripts and service managers can tell what is wrong.
enum ExitStatus: Int32 {
    /// What was asked for was answered with a no.
    case refused = 1
    /// The command line is wrong (`EX_USAGE`); ArgumentParser ends with it too.
    case usage = 64
    /// Something we need is not there: the database, a port (`EX_UNAVAILABLE`).
    case unavailable = 69
    /// A mistake of ours (`EX_SOFTWARE`).
    case software = 70
    /// The configuration is wrong (`EX_CONFIG`).
    case configuration = 78
}

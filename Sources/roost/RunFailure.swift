import ChangeFeed
import Demo
import Gateway

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

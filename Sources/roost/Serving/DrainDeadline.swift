import Dispatch
import Glibc
import Synchronization

/// How long a drain may take, in seconds.
struct DrainTimes {
    /// Between the word of `/readyz` and the first refused connection.
    let delaySeconds: Int
    /// For the sockets.
    let seconds: Int
    /// For all that comes after them.
    static let margin = 5

    /// The drain is over by then, or ended.
    var longest: Int { delaySeconds + seconds + Self.margin }
}

/// Ends the process when its drain takes too long: a loop or a database that hangs must not keep a deploy from going on.
final class DrainDeadline: Sendable {
    private let step = Mutex("draining")

    /// Begins to count.
    init(_ times: DrainTimes) {
        let seconds = times.longest
        DispatchQueue.global().asyncAfter(deadline: .now() + .seconds(seconds)) { [self] in
            let step = step.withLock { $0 }
            StandardError.write("Error: the hub did not stop within \(seconds) s and is ended while it was \(step).\n")
            _exit(ExitStatus.software.rawValue)
        }
    }

    /// - Parameter step: what the drain does from here on, as the error says it.
    func enters(_ step: String) {
        self.step.withLock { $0 = step }
    }
}

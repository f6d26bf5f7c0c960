import Glibc
import Push

/// The lines of `roost push --file`, one notification each.
struct PushLines {
    private let defaults: PushLine.Defaults
    private var number = 0

    /// - Parameter path: `-` for the standard input.
    init(_ path: String, _ defaults: PushLine.Defaults) throws {
        self.defaults = defaults
        guard path != "-" else { return }
        // readLine() reads the standard input and nothing else.
        let descriptor = open(path, O_RDONLY)
        guard descriptor >= 0, dup2(descriptor, STDIN_FILENO) >= 0 else {
            throw RunFailure("\(path) cannot be read: \(String(cString: strerror(errno))).", .usage)
        }
        close(descriptor)
    }

    /// Nil at the end. Empty lines are skipped.
    mutating func next() throws -> Push? {
        while let line = readLine() {
            number += 1
            guard line.contains(where: { !$0.isWhitespace }) else { continue }
            do {
                return try PushLine(parsing: Array(line.utf8), defaults).push
            } catch {
                throw RunFailure("Line \(number) is no push: \(error). It and what follows was not sent.", .usage)
            }
        }
        return nil
    }
}

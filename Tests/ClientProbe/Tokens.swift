import Synchronization

/// The app's token callback: gives one after the other, and the last one again.
final class Tokens: Sendable {
    private let tokens: Mutex<[String]>
    private let asked = Mutex(0)

    init(_ tokens: [String]) { self.tokens = Mutex(tokens) }

    func next() -> String {
        let count = asked.withLock { asked in
            asked += 1
            return asked
        }
        Output.line("token", ["count": count])
        return tokens.withLock { $0.count > 1 ? $0.removeFirst() : $0.first ?? "" }
    }

    func add(_ token: String) { tokens.withLock { $0.append(token) } }
}

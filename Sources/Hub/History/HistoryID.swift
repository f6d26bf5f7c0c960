/// Names a message of a channel's history, for a client to come back with: opaque to it, and JSON text without escapes.
///
/// A history begins when somebody asks for one and ends with the process, or when nobody was in the channel for a while.
/// So an id says which history it belongs to; positions in different ones have nothing to do with each other.
struct HistoryID: Equatable {
    /// Chosen by chance, so that no two histories have the same.
    let history: UInt64
    /// Counts the messages of the history from 1. Zero lies before all of them.
    let position: Int

    init(history: UInt64, position: Int) {
        self.history = history
        self.position = position
    }

    init?(_ text: String) {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 2, let history = UInt64(parts[0], radix: 36),
            let position = Int(parts[1], radix: 36), position >= 0
        else { return nil }
        self.init(history: history, position: position)
    }

    var text: String { String(history, radix: 36) + "." + String(position, radix: 36) }
}

public import Foundation

/// What an outbox cannot do, each with a sentence that says what to do.
public enum OutboxError: Error, Sendable, Equatable {
    case full(waiting: Int, failed: Int)
    case timedOut(Duration)
    case inUse(path: String)
    case damaged(path: String, line: Int)
    case file(path: String, operation: String, reason: String)
}

extension OutboxError: LocalizedError, CustomStringConvertible {
    public var description: String {
        switch self {
        case .full(let waiting, let failed):
            "the outbox is full (\(waiting) wait, \(failed) failed): wait until some are sent, or discard failed ones"
        case .timedOut(let limit):
            "the send took longer than \(limit): it was cancelled and is tried again"
        case .inUse(let path):
            "\(path) belongs to another outbox that is open: use one outbox for each file"
        case .damaged(let path, let line):
            "line \(line) of \(path) cannot be read: move the file away to begin with an empty outbox"
        case .file(let path, let operation, let reason):
            "cannot \(operation) \(path): \(reason)"
        }
    }

    public var errorDescription: String? { description }
}

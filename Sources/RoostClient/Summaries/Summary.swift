public import Foundation

/// The state of one activity at one time.
public struct Summary<State: Sendable>: Sendable {
    public let activityID: String
    public let timestamp: Date
    public let state: State

    public init(activityID: String, timestamp: Date, state: State) {
        self.activityID = activityID
        self.timestamp = timestamp
        self.state = state
    }
}

extension Summary: Equatable where State: Equatable {}

/// What becomes of a summary that has arrived.
public enum SummaryVerdict<State: Sendable>: Sendable {
    /// Show this, on the activity that it names and on no other.
    case update(Summary<State>)
    /// What is shown is as new, or newer.
    case stale
    /// The activity has ended.
    case ended
}

extension SummaryVerdict: Equatable where State: Equatable {}

public import Foundation

/// Decides which summary of a Live Activity is shown, where summaries arrive late, twice and in the wrong order.
///
/// An app learns of an activity's state in several ways: by a push, over the socket, from what it loaded. The newest
/// `timestamp` counts, as it does for ActivityKit; what is not newer than what is shown is dropped. Each activity has
/// its own time line, and one that has ended stays ended.
///
/// ```swift
/// guard case .update(let summary) = ledger.offer(activityID: push.id, timestamp: push.timestamp, state: push.state)
/// else { return }
/// await activities[summary.activityID]?.update(ActivityContent(state: summary.state, staleDate: nil))
/// ```
///
/// A value without a clock and without I/O: keep it where the activities are updated, such as in an actor.
public struct SummaryLedger<State: Sendable>: Sendable {
    private struct Entry {
        var latest: Summary<State>
        var hasEnded: Bool
    }

    private let capacity: Int
    private var entries: [String: Entry] = [:]
    /// The newest timestamp of all activities that were forgotten.
    private var forgottenUntil: Date?
    /// How many summaries were dropped because they were not newer, or of an activity that had ended.
    public private(set) var droppedCount = 0

    /// - Parameter capacity: how many activities are remembered, ended ones included. Beyond that the one with the oldest
    ///   summary is forgotten, ended ones first; to keep it from coming back to life, an activity that is not known is then
    ///   begun only by a summary newer than that.
    public init(capacity: Int = 1_000) { self.capacity = max(1, capacity) }

    /// What is to be shown for an activity: of one that has ended its final state; nil for one that is not known.
    public func latest(activityID: String) -> Summary<State>? { entries[activityID]?.latest }

    /// Whether the final summary of an activity has arrived.
    public func hasEnded(activityID: String) -> Bool { entries[activityID]?.hasEnded ?? false }

    /// A summary has arrived. The first of an activity begins it.
    ///
    /// Its timestamp is when the state was true, by the server's clock: that of the push's `aps`.
    public mutating func offer(activityID: String, timestamp: Date, state: State) -> SummaryVerdict<State> {
        take(Summary(activityID: activityID, timestamp: timestamp, state: state), isLast: false)
    }

    /// The final summary of an activity has arrived. It counts also when it is as old as what is shown: servers that count
    /// in seconds send the last update and the end within one.
    public mutating func end(activityID: String, timestamp: Date, state: State) -> SummaryVerdict<State> {
        take(Summary(activityID: activityID, timestamp: timestamp, state: state), isLast: true)
    }

    private mutating func take(_ summary: Summary<State>, isLast: Bool) -> SummaryVerdict<State> {
        // Of a time that is no number nobody can say whether it is newer.
        guard summary.timestamp.timeIntervalSinceReferenceDate.isFinite else { return drop(.stale) }
        let newest: Date?
        if let entry = entries[summary.activityID] {
            guard !entry.hasEnded else { return drop(.ended) }
            newest = entry.latest.timestamp
        } else {
            newest = forgottenUntil
        }
        if let newest, summary.timestamp < newest || (summary.timestamp == newest && !isLast) { return drop(.stale) }
        entries[summary.activityID] = Entry(latest: summary, hasEnded: isLast)
        forgetOne(except: summary.activityID)
        return .update(summary)
    }

    private mutating func drop(_ verdict: SummaryVerdict<State>) -> SummaryVerdict<State> {
        droppedCount += 1
        return verdict
    }

    private mutating func forgetOne(except newcomer: String) {
        guard entries.count > capacity else { return }
        let oldest = entries.filter { $0.key != newcomer }.min { one, other in
            if one.value.hasEnded != other.value.hasEnded { return one.value.hasEnded }
            return one.value.latest.timestamp < other.value.latest.timestamp
        }
        guard let oldest else { return }
        entries[oldest.key] = nil
        let timestamp = oldest.value.latest.timestamp
        forgottenUntil = forgottenUntil.map { max($0, timestamp) } ?? timestamp
    }
}

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

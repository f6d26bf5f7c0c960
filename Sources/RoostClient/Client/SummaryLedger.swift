public import Foundation

/// Decides which summary of a Live Activity to show when summaries arrive late, twice and out of order.
///
/// An app learns of an activity's state in several ways: by a push, over the socket, from loaded data. The newest
/// `timestamp` wins, as with ActivityKit; a summary that is not newer than the shown one is dropped. Each activity has
/// its own timeline, and one that has ended stays ended.
///
/// ```swift
/// guard case .update(let summary) = ledger.offer(activityID: push.id, timestamp: push.timestamp, state: push.state)
/// else { return }
/// await activities[summary.activityID]?.update(ActivityContent(state: summary.state, staleDate: nil))
/// ```
///
/// A value without a clock or I/O: keep it where the activities are updated, for example in an actor.
public struct SummaryLedger<State: Sendable>: Sendable {
    private struct Entry {
        var latest: Summary<State>
        var hasEnded: Bool
    }

    private let capacity: Int
    private var entries: [String: Entry] = [:]
    /// The newest timestamp of all forgotten activities.
    private var forgottenUntil: Date?
    /// The number of summaries that were dropped, as they were not newer or their activity had ended.
    public private(set) var droppedCount = 0

    /// - Parameter capacity: the number of remembered activities, including ended ones. Beyond it the one with the
    ///   oldest summary is forgotten, ended ones first. To keep a forgotten activity from reappearing, an unknown
    ///   activity then starts only with a summary newer than that.
    public init(capacity: Int = 1_000) { self.capacity = max(1, capacity) }

    /// The summary to show for an activity, the final one if it has ended; nil if the activity is unknown.
    public func latest(activityID: String) -> Summary<State>? { entries[activityID]?.latest }

    /// Whether the final summary of an activity has arrived.
    public func hasEnded(activityID: String) -> Bool { entries[activityID]?.hasEnded ?? false }

    /// Offers a summary that has arrived. The first one of an activity starts it.
    ///
    /// Its timestamp is the time at which the state was true by the server's clock: that of the push's `aps`.
    public mutating func offer(activityID: String, timestamp: Date, state: State) -> SummaryVerdict<State> {
        take(Summary(activityID: activityID, timestamp: timestamp, state: state), isLast: false)
    }

    /// Offers the final summary of an activity. It also counts if it is as old as the shown one: servers that count in
    /// seconds may send the last update and the end within the same one.
    public mutating func end(activityID: String, timestamp: Date, state: State) -> SummaryVerdict<State> {
        take(Summary(activityID: activityID, timestamp: timestamp, state: state), isLast: true)
    }

    private mutating func take(_ summary: Summary<State>, isLast: Bool) -> SummaryVerdict<State> {
        // A time that is not finite cannot be compared.
        guard summary.timestamp.timeIntervalSinceReferenceDate.isFinite else { return dropSummary(.stale) }
        let newest: Date?
        if let entry = entries[summary.activityID] {
            guard !entry.hasEnded else { return dropSummary(.ended) }
            newest = entry.latest.timestamp
        } else {
            newest = forgottenUntil
        }
        if let newest, summary.timestamp < newest || (summary.timestamp == newest && !isLast) {
            return dropSummary(.stale)
        }
        entries[summary.activityID] = Entry(latest: summary, hasEnded: isLast)
        forgetOne(except: summary.activityID)
        return .update(summary)
    }

    private mutating func dropSummary(_ verdict: SummaryVerdict<State>) -> SummaryVerdict<State> {
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

/// The decision about a summary that has arrived.
public enum SummaryVerdict<State: Sendable>: Sendable {
    /// Show this summary, on the activity that it names and no other.
    case update(Summary<State>)
    /// The shown summary is as new, or newer.
    case stale
    /// The activity has ended.
    case ended
}

extension SummaryVerdict: Equatable where State: Equatable {}

import Wire

/// Lists of rows: when they are read, and the hub's reports on a reading.
extension ChannelMachine {
    /// Adds a sequence that shows a list of rows.
    ///
    /// - Parameter stored: the cursor of the stored list; nil if it has no rows yet.
    package mutating func addList(_ subscription: SubscriptionID, _ list: ListRequest, stored: String?, _ at: Instant) {
        guard changes.lists.addList(subscription, list, stored: stored) else {
            let reason =
                "A channel has at most \(RequestedLists.most) lists of rows; open the others in another channel."
            actions.append(.failList(subscription, .subscription(reason: reason)))
            return
        }
        changes.addSequence(subscription, list.changes)
        guard isJoined else { return }
        _ = changes.routeSequence(subscription, list.changes)
        joinAgain(at.now + timing.subscribeDelay)
    }

    /// Schedules a reading of a list that lacks rows which no change brings.
    package mutating func readAgain(_ subscription: SubscriptionID, after pause: Duration, _ at: Instant) {
        guard changes.lists.markForReading(subscription) else { return }
        let due = at.now + pause
        readAgainAt = min(readAgainAt ?? due, due)
    }

    /// Schedules a reading of all lists, after an unknown number of changes was lost.
    mutating func readAllAgain(_ at: Instant) {
        guard !changes.lists.isEmpty else { return }
        changes.lists.markAllForReading()
        readAgainAt = at.now + timing.subscribeDelay
    }

    mutating func takeRowsNews(_ payload: JSON, _ at: Instant) {
        switch payload["message"]?.string {
        case "Rows begin": actions.append(.rowsBegin(changes.lists.reading, isResumed: changes.isResumed))
        case "Rows are there":
            changes.moveCursor(to: payload["cursor"]?.string)
            endReading(changes.lists.endReading(payload), payload["cursor"]?.string, at)
        default: break
        }
    }

    /// Ends the reading of lists.
    mutating func endReading(_ answers: [SubscriptionID: RequestedLists.Answer], _ cursor: String?, _ at: Instant) {
        guard !answers.isEmpty else { return }
        actions.append(.rowsEnd(answers, cursor: cursor))
        guard answers.values.contains(where: { $0.problem != nil }) else { return }
        let due = at.now + changes.lists.pause
        readAgainAt = min(readAgainAt ?? due, due)
    }

    private mutating func joinAgain(_ moment: Moment) { joinAgainAt = min(joinAgainAt ?? moment, moment) }
}

import Postgres

extension PushStore {
    /// Goes on where this hub's last process ended: what that one held waits at least until `moment` (milliseconds since
    /// 1970), as its users have time to come back, and what it was about to send is not sent again.
    ///
    /// - Returns: how many pushes nobody knows of whether they left.
    package func resumeAlerts(heldUntil moment: Int64) throws -> Int {
        _ = try connection.query(SQL.holdAlerts, [node, String(moment)])
        return Int(try connection.query(SQL.unansweredAlerts, [node]).integer(0, 0) ?? 0)
    }

    /// Users for whom alerts wait that this hub put into the queue: those who come back are to be released, also where the
    /// hub's last process held the alerts.
    package func usersWaitedFor() throws -> Set<String> {
        let rows = try connection.query(SQL.usersWaitedFor, [node])
        return Set((0..<rows.count).compactMap { rows.text($0, 0) })
    }

    /// Puts alerts into the queue, where they are not known yet.
    ///
    /// - Parameter drafts: of one message and user the first counts.
    /// - Returns: how many were new, or another hub's that this one knows better.
    package func enqueue(_ drafts: [AlertDraft]) throws -> Int {
        let storable = drafts.filter(\.isStorable)
        if storable.count < drafts.count {
            complaints.note(
                "Some alerts are not sent, as the key of their message, their user or their conversation is longer than "
                    + "1,000 bytes or holds U+0000; shorten what alerts.audience returns.")
        }
        guard !storable.isEmpty else { return 0 }
        var columns = [TextArray](repeating: TextArray(), count: 8)
        for draft in storable {
            columns[0].append(draft.message.utf8)
            columns[1].append(draft.user.utf8)
            columns[2].append(draft.conversation?.utf8)
            columns[3].append(draft.variables)
            columns[4].append(draft.expiresAt)
            columns[5].append(draft.state.name.utf8)
            columns[6].append(draft.state.heldUntil)
            columns[7].append(draft.place)
        }
        let put = try connection.query(SQL.enqueueAlerts, [node] + columns.map(\.literal))
        return Int(put.integer(0, 0) ?? 0)
    }

    /// Takes alerts that are due, the oldest first: from here on they are this hub's to send, and are never taken again,
    /// not even if it is killed before it sends them.
    ///
    /// - Parameter busy: where it is not nil, of each user one alert is taken, and none of these users, who have one on its
    ///   way: what a killed hub had taken is lost.
    package func takeDue(limit: Int, except busy: Set<String>? = nil) throws -> TakenAlerts {
        var users: TextArray?
        if let busy {
            users = TextArray()
            for user in busy where !user.utf8.contains(0) { users?.append(user.utf8) }
        }
        return TakenAlerts(try connection.query(SQL.takeAlerts, [node, String(limit), users?.literal]))
    }

    /// When the next alert falls due that this hub may take, in milliseconds since 1970; nil where none waits. What a dead
    /// hub held is not counted: look with `takeDue` now and then.
    package func nextDue() throws -> Int64? { try connection.query(SQL.nextAlert, [node]).integer(0, 0) }

    /// Drops what waits for users who are live at this hub.
    ///
    /// - Returns: how many alerts.
    package func release(_ users: [String]) throws -> Int {
        guard !users.isEmpty else { return 0 }
        var list = TextArray()
        for user in users where !user.utf8.contains(0) { list.append(user.utf8) }
        return try connection.query(SQL.releaseAlerts, [node, list.literal]).affectedRows
    }

    /// Notes how the sending of alerts ended. For people who look, and for `resumeAlerts`: nothing is sent again either way.
    package func settle(_ settlements: [AlertSettlement]) throws {
        guard !settlements.isEmpty else { return }
        var columns = [TextArray](repeating: TextArray(), count: 5)
        for settlement in settlements where !settlement.message.utf8.contains(0) {
            columns[0].append(settlement.message.utf8)
            columns[1].append(settlement.destination.token.hex.utf8)
            columns[2].append(settlement.destination.environment.rawValue.utf8)
            columns[3].append(settlement.destination.bundle.utf8)
            columns[4].append(settlement.outcome.utf8)
        }
        _ = try connection.query(SQL.settleAlerts, columns.map(\.literal))
    }

    /// Puts alerts back that this hub has taken and that never left; the outcomes are of no meaning.
    package func giveBack(_ settlements: [AlertSettlement]) throws {
        var columns = [TextArray](repeating: TextArray(), count: 4)
        for settlement in settlements where !settlement.message.utf8.contains(0) {
            columns[0].append(settlement.message.utf8)
            columns[1].append(settlement.destination.token.hex.utf8)
            columns[2].append(settlement.destination.environment.rawValue.utf8)
            columns[3].append(settlement.destination.bundle.utf8)
        }
        _ = try connection.query(SQL.giveBackAlerts, [node] + columns.map(\.literal))
    }
}

extension AlertDraft.State {
    /// The word for it in the table.
    fileprivate var name: String {
        switch self {
        case .due: "due"
        case .held: "held"
        case .elsewhere: "elsewhere"
        case .dropped: "dropped"
        }
    }

    /// In milliseconds since 1970; without meaning but for `held`.
    fileprivate var heldUntil: Int64 { if case .held(let until) = self { until } else { 0 } }
}

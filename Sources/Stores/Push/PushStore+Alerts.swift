package import Hub
import Postgres
package import Wire

extension PushStore {
    /// Resumes where this hub's last process ended: alerts that it held wait at least until `moment` (milliseconds since 1970), to give
    /// their users time to come back, and those that it was about to send are not sent again.
    ///
    /// - Returns: the number of pushes that may or may not have left.
    package func resumeAlerts(heldUntil moment: Int64) throws -> Int {
        _ = try connection.query(AlertSQL.holdAlerts, [node, String(moment)])
        return Int(try connection.query(AlertSQL.closeUnanswered, [node]).boundedInteger(0, 0) ?? 0)
    }

    /// Returns alerts for which some hub does not know yet whether their users have the messages, the oldest first.
    package func waitingAlerts() throws -> [WaitingAlert] {
        let rows = try connection.query(AlertSQL.waitingAlerts, [node, String(Self.mostWaiting)])
        return (0..<rows.count).compactMap { row in
            guard let message = rows.name(row, 0), let user = rows.name(row, 1) else { return nil }
            return WaitingAlert(
                message: message, user: user, place: rows.boundedInteger(row, 2) ?? 0,
                heldUntil: rows.flag(row, 3) ? rows.boundedInteger(row, 4) : nil)
        }
    }

    /// Alerts above this number are not tracked: they are sent when their wait is over.
    private static let mostWaiting = 20_000

    /// Queues alerts that are not known yet.
    ///
    /// - Parameter drafts: the first one of a message and user counts.
    /// - Returns: the new ones, and those of another hub that this one knows better, and whether they wait for other hubs' answers.
    package func enqueue(_ drafts: [AlertDraft]) throws -> [EnqueuedAlert] {
        let storable = drafts.filter(\.isStorable)
        if storable.count < drafts.count {
            warnings.logWarning(
                "Some alerts are not sent, as the key of their message, their user or their conversation is longer than "
                    + "1,000 bytes or holds U+0000; shorten what alerts.audience returns.")
        }
        guard !storable.isEmpty else { return [] }
        var columns = [TextArray](repeating: TextArray(), count: 10)
        for draft in storable {
            columns[0].append(draft.message.utf8)
            columns[1].append(draft.user.utf8)
            columns[2].append(draft.conversation?.utf8)
            columns[3].append(draft.variables)
            columns[4].append(draft.expiresAt)
            columns[5].append(draft.state.name.utf8)
            columns[6].append(draft.state.heldUntil)
            columns[7].append(draft.place)
            columns[8].append(draft.reason.rawValue.utf8)
            columns[9].append(draft.written?.utf8)
        }
        let put = try connection.query(AlertSQL.enqueueAlerts, [node] + columns.map(\.literal))
        return (0..<put.count).compactMap { row in
            guard let message = put.name(row, 0), let user = put.name(row, 1) else { return nil }
            return EnqueuedAlert(
                message: message, user: user, isElsewhere: put.flag(row, 2), isNew: put.flag(row, 3))
        }
    }

    /// Stores this hub's present knowledge of waiting alerts, whichever hub queued them.
    ///
    /// - Parameter verdicts: the last one of a message and user counts.
    /// - Returns: the number of dropped alerts.
    package func decide(_ verdicts: [AlertVerdict]) throws -> Int {
        guard !verdicts.isEmpty else { return 0 }
        var last: [AlertKey: Int] = [:]
        for (index, verdict) in verdicts.enumerated() {
            last[AlertKey(message: verdict.message, user: verdict.user)] = index
        }
        let latest = last.values.sorted().map { verdicts[$0] }
        var columns = [TextArray](repeating: TextArray(), count: 5)
        for verdict in latest where !verdict.message.utf8.contains(0) && !verdict.user.utf8.contains(0) {
            columns[0].append(verdict.message.utf8)
            columns[1].append(verdict.user.utf8)
            columns[2].append(verdict.state.name.utf8)
            columns[3].append(verdict.state.heldUntil)
            columns[4].append(verdict.reason.rawValue.utf8)
        }
        return Int(
            try connection.query(AlertSQL.decideAlerts, [node] + columns.map(\.literal)).boundedInteger(0, 0) ?? 0)
    }

    /// Notes that phones have the messages of alerts, which are then not sent to them.
    package func spare(_ phones: [SparedPhones]) throws {
        guard !phones.isEmpty else { return }
        var columns = [TextArray](repeating: TextArray(), count: 4)
        for phone in phones where !phone.message.utf8.contains(0) && !phone.user.utf8.contains(0) {
            columns[0].append(phone.message.utf8)
            columns[1].append(phone.user.utf8)
            columns[2].append((phone.session ?? "").utf8)
            columns[3].append(phone.reason.rawValue.utf8)
        }
        _ = try connection.query(AlertSQL.sparePhones, [node] + columns.map(\.literal))
    }

    /// Returns the claims `session_id` that users' phones for alerts were registered with; nil for phones without one.
    package func sessionsOfPhones(of users: Set<Name>) throws -> [Name: [Name?]] {
        var array = TextArray()
        for user in users where !user.utf8.contains(0) { array.append(user.utf8) }
        let rows = try connection.query(AlertSQL.sessionsOfPhones, [array.literal])
        var sessions: [Name: [Name?]] = [:]
        for row in 0..<rows.count {
            if let user = rows.name(row, 0) { sessions[user, default: []].append(rows.name(row, 1)) }
        }
        return sessions
    }

    /// Takes due alerts, the oldest first: only this hub may send them now, and they are never taken again, even if it is killed before
    /// it sends them.
    ///
    /// - Parameters:
    ///   - busy: unless nil, only one alert of each user is taken, and none of these users, who have one on its way: alerts taken by a
    ///     killed hub are lost.
    ///   - full: kinds to which nothing can be sent now; alerts of users with a device of one of them wait.
    package func takeDue(
        limit: Int, except busy: Set<Name>? = nil, full: Set<PushKind> = []
    ) throws -> TakenAlerts {
        var users: TextArray?
        if let busy {
            users = TextArray()
            for user in busy where !user.utf8.contains(0) { users?.append(user.utf8) }
        }
        var environments: TextArray?
        if !full.isEmpty {
            environments = TextArray()
            for environment in full.flatMap(PushDestination.environments) { environments?.append(environment.utf8) }
        }
        return TakenAlerts(
            try connection.query(
                AlertSQL.takeAlerts, [node, String(limit), users?.literal, environments?.literal]))
    }

    /// Returns the time when the next alert falls due that this hub may take, in milliseconds since 1970; nil if none waits. Alerts
    /// held by a dead hub are not counted: call `takeDue` now and then.
    package func nextDue() throws -> Int64? { try connection.query(AlertSQL.nextAlert).boundedInteger(0, 0) }

    /// Stores how the sending of alerts ended. For operators, and for `resumeAlerts`: nothing is sent again either way.
    package func settle(_ settlements: [AlertSettlement]) throws {
        guard !settlements.isEmpty else { return }
        _ = try connection.query(AlertSQL.settleAlerts, Self.columns(settlements))
    }

    /// Returns alerts that this hub has taken and whose outcome is not stored, one for each phone.
    package func unsettledAlerts() throws -> [UnsettledAlert] {
        let rows = try connection.query(AlertSQL.unsettledAlerts, [node])
        return (0..<rows.count).compactMap { row in
            guard let message = rows.name(row, 0), let destination = PushDestination(rows, row, from: 1) else {
                return nil
            }
            return UnsettledAlert(message: message, destination: destination)
        }
    }

    /// Hands this hub's held alerts to other hubs, as it ends: they, or its next process, have this many milliseconds to find that the
    /// users have the messages.
    package func handOver(within milliseconds: Int64) throws {
        _ = try connection.query(AlertSQL.handOverAlerts, [node, String(milliseconds)])
    }

    /// Puts back alerts that this hub has taken and that never left; the outcomes are ignored.
    package func giveBack(_ settlements: [AlertSettlement]) throws {
        _ = try connection.query(AlertSQL.giveBackAlerts, [node] + Self.columns(settlements).dropLast())
    }

    /// Makes one array for each column: the message, the device's three, the outcome.
    private static func columns(_ settlements: [AlertSettlement]) -> [String] {
        var columns = [TextArray](repeating: TextArray(), count: 5)
        for settlement in settlements where !settlement.message.utf8.contains(0) {
            columns[0].append(settlement.message.utf8)
            columns[1].append(settlement.destination.token.text.utf8)
            columns[2].append(settlement.destination.environmentColumn.utf8)
            columns[3].append(settlement.destination.bundle.utf8)
            columns[4].append(settlement.outcome.utf8)
        }
        return columns.map(\.literal)
    }
}

extension AlertDraft.State {
    /// The state's name in the table.
    fileprivate var name: String {
        switch self {
        case .due: "due"
        case .held: "held"
        case .dropped: "dropped"
        }
    }

    /// In milliseconds since 1970; meaningful only for `held`.
    fileprivate var heldUntil: Int64 { if case .held(let until) = self { until } else { 0 } }
}

/// A hub's new knowledge about a waiting alert.
package struct AlertVerdict: Sendable, Equatable {
    package let message: Name
    package let user: Name
    package let state: AlertDraft.State
    package let reason: AlertReason

    package init(message: Name, user: Name, state: AlertDraft.State, reason: AlertReason) {
        self.message = message
        self.user = user
        self.state = state
        self.reason = reason
    }
}

/// An alert that was queued, or corrected in the queue.
package struct EnqueuedAlert: Sendable, Equatable {
    package let message: Name
    package let user: Name
    /// True if it waits for the answer of another hub, at which the user is online, or which holds it.
    package let isElsewhere: Bool
    /// True if no hub had queued it before.
    package let isNew: Bool
}

/// An alert for which some hub does not know yet whether its user has the message.
package struct WaitingAlert: Sendable, Equatable {
    package let message: Name
    package let user: Name
    /// `RowChange.id` of the message.
    package let place: Int64
    /// The time until which this hub holds it, in milliseconds since 1970; nil if it waits for another hub.
    package let heldUntil: Int64?
}

/// An alert to one user, with the hub's knowledge of the user's connection.
package struct AlertDraft: Sendable, Equatable {
    /// Whether and when to send the alert.
    package enum State: Sendable, Equatable {
        /// This hub has nothing against it: send it at once, unless the user is online at another hub, which reads the same change.
        case due
        /// This hub does not know until then, in milliseconds since 1970, whether the user has the message.
        case held(until: Int64)
        /// The user has the message: no hub alerts.
        case dropped
    }

    /// The key of the message, the same at every hub.
    package let message: Name
    package let user: Name
    package let conversation: Name?
    /// The variables for the templates, as a JSON object.
    package let variables: [UInt8]
    /// In milliseconds since 1970; alerts not sent by then are dropped.
    package let expiresAt: Int64
    package let state: State
    package let reason: AlertReason
    /// `RowChange.id` of the message: a user's alerts are sent in this order.
    package let place: Int64
    /// The position of the message in its conversation, which read positions are compared with; nil if unknown.
    package let written: Name?

    package init(
        message: Name, user: Name, conversation: Name?, variables: [UInt8], expiresAt: Int64, state: State,
        reason: AlertReason = .away, place: Int64 = 0, written: Name? = nil
    ) {
        self.message = message
        self.user = user
        self.conversation = conversation
        self.variables = variables
        self.expiresAt = expiresAt
        self.state = state
        self.reason = reason
        self.place = place
        self.written = written
    }

    /// Whether Postgres' texts and indices can hold its keys; everything else comes from a database and fits.
    var isStorable: Bool {
        let keys = [message, user, conversation ?? "", written ?? ""]
        return keys.allSatisfy { !$0.utf8.contains(0) && $0.utf8.count <= 1000 } && !variables.contains(0)
    }
}

/// An alert that this hub has taken: no other hub ever sends it.
package struct DueAlert: Sendable, Equatable {
    package let message: Name
    package let user: Name
    package let conversation: Name?
    /// The variables of the draft.
    package let variables: [UInt8]
    /// In milliseconds since 1970.
    package let expiresAt: Int64
    /// The user's phones that this message has not been sent to yet; at least one.
    package let devices: [DeviceRegistration]
}

/// The alerts that `PushStore.takeDue` took out of the queue.
package struct TakenAlerts: Sendable, Equatable {
    package internal(set) var alerts: [DueAlert] = []
    /// The number of alerts that came too late to be sent.
    package internal(set) var expired = 0
    /// The number of alerts without a phone to send to.
    package internal(set) var withoutDevice = 0

    /// The number of rows taken from the queue: if it equals the limit, there may be more.
    package var count: Int { alerts.count + expired + withoutDevice }
}

/// An alert to one phone that a hub has taken.
package struct UnsettledAlert: Hashable, Sendable {
    package let message: Name
    package let destination: PushDestination

    package init(message: Name, destination: PushDestination) {
        self.message = message
        self.destination = destination
    }
}

/// The end of the sending of an alert to one phone.
package struct AlertSettlement: Sendable, Equatable {
    package let message: Name
    package let destination: PushDestination
    /// One word for readers of the table.
    package let outcome: String

    package init(message: Name, destination: PushDestination, outcome: String) {
        self.message = message
        self.destination = destination
        self.outcome = outcome
    }
}

private struct AlertKey: Hashable {
    let message: Name
    let user: Name
}

extension TakenAlerts {
    /// Reads the rows of `TakeAlerts`: alerts, each followed by its phones, which have a token.
    init(_ rows: QueryResult) {
        let keys = (0..<rows.count).map { AlertKey(message: rows.name($0, 0) ?? "", user: rows.name($0, 1) ?? "") }
        var devices: [AlertKey: [DeviceRegistration]] = [:]
        for row in 0..<rows.count {
            guard let destination = PushDestination(rows, row, from: 6) else { continue }
            devices[keys[row], default: []].append(
                DeviceRegistration(
                    user: keys[row].user, destination: destination, kind: .alert,
                    registeredAt: rows.boundedInteger(row, 9) ?? 0,
                    keys: rows.text(row, 12).flatMap { WebPushKeys(column: $0) }
                ))
        }
        for row in 0..<rows.count {
            switch rows.text(row, 2) {
            case "expired": expired += 1
            case "taken":
                guard let devices = devices[keys[row]] else {
                    withoutDevice += 1
                    continue
                }
                alerts.append(
                    DueAlert(
                        message: keys[row].message, user: keys[row].user, conversation: rows.name(row, 3),
                        variables: rows.bytes(row, 4).map { Array($0) } ?? [],
                        expiresAt: rows.boundedInteger(row, 5) ?? 0,
                        devices: devices))
            default: continue
            }
        }
    }
}

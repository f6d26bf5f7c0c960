import Wire

/// One entry of `config.postgres_changes` in a join: the rows of a table that a sequence requests.
package struct ChangeRequest: Equatable, Sendable {
    package let schema: String
    package let table: String
    /// Nil asks for inserts, updates and deletes.
    package let kind: ChangeKind?
    /// The text of a `RowFilter`; nil asks for all rows.
    package let filter: String?

    package init(schema: String, table: String, kind: ChangeKind?, filter: String?) {
        self.schema = schema
        self.table = table
        self.kind = kind
        self.filter = filter
    }

    /// The text of the entry, a JSON object.
    package var json: [UInt8] {
        var out = Array("{\"event\":\"".utf8)
        out += (kind?.rawValue ?? "*").utf8
        out += "\",\"schema\":".utf8
        JSONString.encode(schema, into: &out)
        out += ",\"table\":".utf8
        JSONString.encode(table, into: &out)
        if let filter {
            out += ",\"filter\":".utf8
            JSONString.encode(filter, into: &out)
        }
        out.append(UInt8(ascii: "}"))
        return out
    }
}

/// The row changes that a channel's sequences request: which of them the hub has granted, which sequences a change goes
/// to, and where the next join resumes.
///
/// A part of `ChannelMachine`, which decides when the channel joins. Pure: it has no clock and sends nothing.
package struct RequestedChanges {
    /// The consequences of the hub's reply to a join.
    struct Outcome {
        /// True if every change since the last connection arrives.
        let isResumed: Bool
        /// The reason why changes were missed for good; nil if none were.
        let gap: String?
        /// True if a sequence waits for rows that this join did not request.
        let lacksSome: Bool
        /// True if the join requested rows that no sequence reads any more.
        let hasUnread: Bool
    }

    private var wanted: [SubscriptionID: ChangeRequest] = [:]
    /// The requests of the last join. The hub replies with one ID for each, in this order.
    private var asked: [ChangeRequest] = []
    /// The granted requests of the last join, with the hub's IDs.
    private var granted: [(request: ChangeRequest, id: Int)] = []
    /// The sequences that receive a change, by the hub's ID.
    private var routes: [Int: [SubscriptionID]] = [:]
    /// The lists of rows among the sequences.
    package var lists = RequestedLists()
    /// True if the last join yields only changes since its cursor.
    private(set) var isResumed = false
    /// True if the cursor comes from stored lists: no other changes up to it were received.
    private var isCursorStored = false
    /// True if row changes were live before, so that a join that cannot resume leaves a gap.
    private var hasBeenLive = false
    /// The position at which the next join resumes; nil starts at the present.
    private(set) var cursor: String?
    /// True after the reply to a join until the hub reports that row changes are live.
    private(set) var awaitsLive = false

    init(cursor: String?) { self.cursor = cursor }

    // MARK: Sequences

    mutating func addSequence(_ subscription: SubscriptionID, _ request: ChangeRequest) {
        wanted[subscription] = request
    }

    /// Routes changes that the channel already receives to a sequence. Returns false if the channel has to join again
    /// for them.
    mutating func routeSequence(_ subscription: SubscriptionID, _ request: ChangeRequest) -> Bool {
        guard let id = granted.first(where: { $0.request == request })?.id else { return false }
        routes[id, default: []].append(subscription)
        return true
    }

    /// - Returns: true if no other sequence reads these changes.
    mutating func removeSequence(_ subscription: SubscriptionID) -> Bool {
        lists.removeList(subscription)
        guard let request = wanted.removeValue(forKey: subscription) else { return false }
        for id in routes.keys { routes[id]?.removeAll { $0 == subscription } }
        return !wanted.values.contains(request)
    }

    // MARK: Joining

    /// The requests of the join that is about to be sent, each once.
    mutating func beginJoin() -> [ChangeRequest] {
        asked = []
        for (_, request) in wanted.sorted(by: { $0.key < $1.key }) where !asked.contains(request) {
            asked.append(request)
        }
        return asked
    }

    /// The lists that the join about to be sent reads: entries of `config.rows`.
    mutating func beginReading() -> [[UInt8]] {
        // Sequences of changes alone were not given the changes since a list was stored, and do not want them.
        if cursor == nil, !hasBeenLive, wanted.count == lists.count, let stored = lists.takeStoredCursor() {
            cursor = stored
            isCursorStored = true
        }
        return lists.beginJoin(hasCursor: cursor != nil)
    }

    /// Notes that everything up to this cursor has arrived.
    mutating func moveCursor(to cursor: String?) { self.cursor = cursor ?? self.cursor }

    mutating func joinSucceeded(_ response: JSON) -> Outcome {
        routes = [:]
        granted = zip(asked, response["postgres_changes"]?.elements ?? []).compactMap { request, echoed in
            echoed["id"]?.int.map { (request, $0) }
        }
        var lacksSome = false
        for (subscription, request) in wanted where !routeSequence(subscription, request) { lacksSome = true }
        let hadCursor = cursor != nil
        let resumed = response["resumed"]?.bool
        isResumed = hadCursor && resumed == true
        lists.joinSucceeded(isResumed: isResumed)
        var gap: String?
        if hadCursor || hasBeenLive, !asked.isEmpty, resumed != true {
            if !isCursorStored { gap = response["reason"]?.string ?? "The hub cannot resume row changes." }
            // The cursor is useless; the hub sends another one.
            cursor = nil
        }
        hasBeenLive = !asked.isEmpty
        awaitsLive = !asked.isEmpty
        isCursorStored = false
        return Outcome(
            isResumed: isResumed, gap: gap, lacksSome: lacksSome || lists.lacksSome,
            hasUnread: !asked.allSatisfy(wanted.values.contains))
    }

    // MARK: Frames of the hub

    /// Notes that row changes are live.
    ///
    /// - Returns: false if they were already.
    mutating func changesWentLive(cursor: String?) -> Bool {
        self.cursor = cursor ?? self.cursor
        defer { awaitsLive = false }
        return awaitsLive
    }

    /// The sequences that receive a change, by the hub's IDs of their requests. Moves the cursor behind the change.
    mutating func readers(of change: IncomingChange, ids: [Int]) -> [SubscriptionID] {
        // IDs of a join without a reply are not known here: its changes come again after the cursor.
        guard !routes.isEmpty else { return [] }
        cursor = change.cursor ?? cursor
        var subscriptions: [SubscriptionID] = []
        for id in ids {
            for subscription in routes[id] ?? []
            where !subscriptions.contains(subscription)
                && (!change.isSnapshot || lists.reading.contains(subscription))
            {
                subscriptions.append(subscription)
            }
        }
        return subscriptions
    }

    /// The hub cannot serve the requests: no sequence waits for changes any more.
    mutating func failRequests() {
        channelLost()
        lists.removeAll()
        wanted = [:]
        hasBeenLive = false
    }

    /// The channel is lost, and with it the grants. The sequences' requests remain for the next join.
    mutating func channelLost() {
        routes = [:]
        granted = []
        awaitsLive = false
        lists.channelLost()
    }
}

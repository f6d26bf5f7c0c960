import Wire

/// One entry of `config.postgres_changes` in a join: which rows of which table a sequence asks for.
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

/// The row changes that a channel's sequences ask for: what the hub grants of them, to whom a change goes, and where
/// the next join resumes.
///
/// A part of `ChannelMachine`, which decides when the channel joins. Pure: it has no clock and sends nothing.
package struct RequestedChanges {
    /// What the hub's answer to a join means.
    struct Outcome {
        /// Every change since the last connection comes.
        let isResumed: Bool
        /// Why changes were missed for good; nil where none were.
        let gap: String?
        /// Some sequence waits for rows that this join did not ask for.
        let lacksSome: Bool
        /// The join asked for rows that no sequence reads any more.
        let hasUnread: Bool
    }

    private var wanted: [SubscriptionID: ChangeRequest] = [:]
    /// What the last join asked for. The hub answers with one id for each, in this order.
    private var asked: [ChangeRequest] = []
    /// What the last answered join got, with the hub's ids.
    private var granted: [(request: ChangeRequest, id: Int)] = []
    /// The sequences that read a change, by the hub's id.
    private var routes: [Int: [SubscriptionID]] = [:]
    /// The lists of rows among the sequences.
    package var lists = RequestedLists()
    /// The last answered join brings only what changed since its cursor.
    private(set) var isResumed = false
    /// The cursor is that of lists which were stored: nothing else was heard up to there.
    private var isCursorStored = false
    /// Row changes were live before, so that a join which cannot resume leaves a gap.
    private var hasBeenLive = false
    /// Behind which change the next join resumes; nil begins at the present.
    private(set) var cursor: String?
    /// The join was answered, and the hub has not said yet that row changes are live.
    private(set) var awaitsLive = false

    init(cursor: String?) { self.cursor = cursor }

    // MARK: Sequences

    mutating func add(_ subscription: SubscriptionID, _ request: ChangeRequest) { wanted[subscription] = request }

    /// Lets a sequence have what the channel gets already. False where the channel has to join again for it.
    mutating func route(_ subscription: SubscriptionID, _ request: ChangeRequest) -> Bool {
        guard let id = granted.first(where: { $0.request == request })?.id else { return false }
        routes[id, default: []].append(subscription)
        return true
    }

    /// - Returns: whether no other sequence reads what this one did.
    mutating func remove(_ subscription: SubscriptionID) -> Bool {
        lists.remove(subscription)
        guard let request = wanted.removeValue(forKey: subscription) else { return false }
        for id in routes.keys { routes[id]?.removeAll { $0 == subscription } }
        return !wanted.values.contains(request)
    }

    // MARK: Joining

    /// What the join that is about to be sent asks for, each request once.
    mutating func beginJoin() -> [ChangeRequest] {
        asked = []
        for (_, request) in wanted.sorted(by: { $0.key < $1.key }) where !asked.contains(request) {
            asked.append(request)
        }
        return asked
    }

    /// The rows that the join which is about to be sent asks for: entries of `config.rows`.
    mutating func beginReading() -> [[UInt8]] {
        // Who listens to changes alone was told none of what came since a list was stored, and wants none of it.
        if cursor == nil, !hasBeenLive, wanted.count == lists.count, let stored = lists.takeStoredCursor() {
            cursor = stored
            isCursorStored = true
        }
        return lists.beginJoin(hasCursor: cursor != nil)
    }

    /// All up to this cursor has come.
    mutating func move(to cursor: String?) { self.cursor = cursor ?? self.cursor }

    mutating func joined(_ response: JSON) -> Outcome {
        routes = [:]
        granted = zip(asked, response["postgres_changes"]?.elements ?? []).compactMap { request, echoed in
            echoed["id"]?.int.map { (request, $0) }
        }
        var lacksSome = false
        for (subscription, request) in wanted where !route(subscription, request) { lacksSome = true }
        let hadCursor = cursor != nil
        let resumed = response["resumed"]?.bool
        isResumed = hadCursor && resumed == true
        lists.joined(isResumed: isResumed)
        var gap: String?
        if hadCursor || hasBeenLive, !asked.isEmpty, resumed != true {
            if !isCursorStored { gap = response["reason"]?.string ?? "The hub cannot resume row changes." }
            // It leads nowhere; the hub gives another one.
            cursor = nil
        }
        hasBeenLive = !asked.isEmpty
        awaitsLive = !asked.isEmpty
        isCursorStored = false
        return Outcome(
            isResumed: isResumed, gap: gap, lacksSome: lacksSome || lists.lacksSome,
            hasUnread: !asked.allSatisfy(wanted.values.contains))
    }

    // MARK: What the hub sends

    /// The hub says that row changes are live from here on.
    ///
    /// - Returns: whether this is news.
    mutating func live(cursor: String?) -> Bool {
        self.cursor = cursor ?? self.cursor
        defer { awaitsLive = false }
        return awaitsLive
    }

    /// The sequences that a change goes to, by the hub's ids for what they asked for. The next join resumes behind it.
    mutating func readers(of change: IncomingChange, ids: [Int]) -> [SubscriptionID] {
        // Nobody was told the ids of an incarnation that is not answered: its changes come again behind our cursor.
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

    /// The hub cannot serve what was asked for: no sequence waits for anything any more.
    mutating func fail() {
        lose()
        lists.removeAll()
        wanted = [:]
        hasBeenLive = false
    }

    /// The channel is lost, and with it what the hub granted. What sequences ask for stays, for the next join.
    mutating func lose() {
        routes = [:]
        granted = []
        awaitsLive = false
        lists.lose()
    }
}

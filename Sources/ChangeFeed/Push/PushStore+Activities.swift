package import Hub
import Postgres

extension PushStore {
    /// Notes the token of a Live Activity, which this hub updates from here on. One that rotates replaces the one before;
    /// what the activity was sent last stays.
    package func register(
        activity id: String, at destination: PushDestination, about conversation: String?, by bearer: PushBearer
    ) throws -> ActivityOutcome {
        try Self.demandStorable(id, destination.bundle, conversation)
        let claims = String(decoding: bearer.claims, as: UTF8.self)
        let rows = try connection.query(
            ActivityRow.statement(SQL.registerActivity),
            [id, bearer.user, bearer.session, bearer.role, claims] + destination.columns
                + [conversation, node, String(Self.activitiesPerUser)])
        if let owned = OwnedActivity(rows, 0, from: 0) { return .registered(owned.activity) }
        return try activity(id).map { $0.activity.user != bearer.user } ?? false ? .othersActivity : .tooMany
    }

    /// Nil for an unknown id.
    package func activity(_ id: String) throws -> OwnedActivity? {
        guard !id.utf8.contains(0) else { return nil }
        return try ActivityRow.all(connection.query(ActivityRow.statement(SQL.activities), [id, nil, nil])).first
    }

    /// Those that have not ended, in the order in which they were registered.
    package func activities(of user: String) throws -> [ActivityRegistration] {
        try Self.demandStorable(user)
        return try ActivityRow.all(connection.query(ActivityRow.statement(SQL.activities), [nil, user, nil]))
            .map(\.activity)
    }

    /// Those that this hub updates: what its last process left behind.
    package func ownActivities() throws -> [ActivityRegistration] {
        try ActivityRow.all(connection.query(ActivityRow.statement(SQL.activities), [nil, nil, node])).map(\.activity)
    }

    /// Ends an activity of a user.
    ///
    /// - Returns: the activity; nil where it is not the user's, or has ended.
    package func remove(activity id: String, of user: String) throws -> OwnedActivity? {
        try Self.demandStorable(id, user)
        return try end([id], [user, nil]).first
    }

    /// Ends activities of this hub's.
    package func end(activities ids: [String]) throws { _ = try end(ids, [nil, node]) }

    private func end(_ ids: [String], _ whose: [String?]) throws -> [OwnedActivity] {
        var list = TextArray()
        for id in ids where !id.utf8.contains(0) { list.append(id.utf8) }
        return try ActivityRow.all(
            connection.query(ActivityRow.statement(SQL.endActivities), [list.literal] + whose))
    }

    /// Takes over the activities of users who came online at this hub.
    ///
    /// - Returns: those that another hub had.
    package func adopt(activitiesOf users: [String]) throws -> [ActivityRegistration] {
        guard !users.isEmpty else { return [] }
        var list = TextArray()
        for user in users where !user.utf8.contains(0) { list.append(user.utf8) }
        return try adopt(users: list.literal)
    }

    /// Takes over activities of hubs that gave no sign for 30 s.
    package func adoptOrphans() throws -> [ActivityRegistration] { try adopt(users: nil) }

    /// Takes over activities whose users are online at this hub and not at the one that has them.
    package func adoptReturned() throws -> [ActivityRegistration] { try adopt(users: nil, returned: true) }

    /// Takes over one activity, whoever has it.
    package func adopt(_ id: String) throws -> [ActivityRegistration] {
        guard !id.utf8.contains(0) else { return [] }
        return try adopt(users: nil, id: id)
    }

    private func adopt(
        users: String?, returned: Bool = false, id: String? = nil
    ) throws -> [ActivityRegistration] {
        let parameters = [node, users, returned ? "t" : "f", id]
        return try ActivityRow.all(connection.query(ActivityRow.statement(SQL.adoptActivities), parameters))
            .map(\.activity)
    }

    /// Notes which states APNs took, so that they are not told again after a restart: by activity, the timestamp.
    package func noteDelivered(_ timestamps: [String: Int64]) throws {
        var ids = TextArray()
        var values = TextArray()
        for (id, timestamp) in timestamps.sorted(by: { $0.key < $1.key }) {
            ids.append(id.utf8)
            values.append(timestamp)
        }
        _ = try connection.query(SQL.noteDelivered, [ids.literal, values.literal])
    }

    /// Writes down what is about to be sent, before it leaves. A stamp without a state is kept with an empty one.
    ///
    /// - Parameter stamps: each activity once.
    /// - Returns: an answer to each stamp, in order; only what is granted may be sent.
    package func stamp(_ stamps: [ActivityStamp]) throws -> [StampOutcome] {
        guard !stamps.isEmpty else { return [] }
        var ids = TextArray()
        var timestamps = TextArray()
        var versions = TextArray()
        var states = TextArray()
        var posted = TextArray()
        for stamp in stamps {
            let state = stamp.state ?? Array("{}".utf8)
            guard !stamp.id.utf8.contains(0), !state.contains(0) else { continue }
            ids.append(stamp.id.utf8)
            timestamps.append(stamp.timestamp)
            versions.append(Int64(stamp.version))
            states.append(state)
            posted.append(stamp.isPosted)
        }
        let rows = try connection.query(
            ActivityRow.statement(SQL.stampActivities),
            [node, ids.literal, timestamps.literal, versions.literal, states.literal, posted.literal])
        var outcomes: [String: StampOutcome] = [:]
        for row in 0..<rows.count {
            guard let id = rows.text(row, 0) else { continue }
            outcomes[id] =
                rows.flag(row, 1) ? .granted : OwnedActivity(rows, row, from: 2).map { .refused($0) } ?? .unknown
        }
        return stamps.map { outcomes[$0.id] ?? .unknown }
    }
}

package import Hub
import Logging
import Postgres
package import Wire

extension PushStore {
    /// Stores the token of a Live Activity, which this hub updates from now on. A rotated token replaces the one before; the last state
    /// sent to the activity stays.
    package func register(
        activity id: Name, at destination: PushDestination, about conversation: Name?, by bearer: PushBearer
    ) throws -> ActivityOutcome {
        try Self.demandStorable(id, destination.bundle, conversation)
        let claims = String(decoding: bearer.claims, as: UTF8.self)
        let rows = try connection.query(
            ActivityRow.statement(.registerActivity),
            [id.text, bearer.user.text, bearer.session?.text, bearer.role.text, claims] + destination.columns
                + [conversation?.text, node, String(Self.activitiesPerUser)])
        if let owned = OwnedActivity(rows, 0, from: 0) { return .registered(owned.activity) }
        return try activity(id).map { $0.activity.user != bearer.user } ?? false ? .othersActivity : .tooMany
    }

    /// Returns nil for an unknown id.
    package func activity(_ id: Name) throws -> OwnedActivity? {
        guard !id.utf8.contains(0) else { return nil }
        return try ActivityRow.all(connection.query(ActivityRow.statement(.findActivities), [id.text, nil, nil])).first
    }

    /// Returns the activities that have not ended, in the order of registration.
    package func activities(of user: Name) throws -> [ActivityRegistration] {
        try Self.demandStorable(user)
        return try ActivityRow.all(connection.query(ActivityRow.statement(.findActivities), [nil, user.text, nil]))
            .map(\.activity)
    }

    /// Returns the activities that this hub updates: those left by its last process.
    package func ownActivities() throws -> [ActivityRegistration] {
        try ActivityRow.all(connection.query(ActivityRow.statement(.findActivities), [nil, nil, node])).map(\.activity)
    }

    /// Ends an activity of a user.
    ///
    /// - Returns: the activity; nil if it is not the user's, or has ended.
    package func remove(activity id: Name, of user: Name) throws -> OwnedActivity? {
        try Self.demandStorable(id, user)
        return try end([id], [user.text, nil]).first
    }

    /// Ends activities of this hub's.
    package func end(activities ids: [Name]) throws { _ = try end(ids, [nil, node]) }

    private func end(_ ids: [Name], _ whose: [String?]) throws -> [OwnedActivity] {
        var list = TextArray()
        for id in ids where !id.utf8.contains(0) { list.append(id.utf8) }
        return try ActivityRow.all(
            connection.query(ActivityRow.statement(.endActivities), [list.literal] + whose))
    }

    /// Takes over the activities of users who came online at this hub.
    ///
    /// - Returns: those that another hub had.
    package func adopt(activitiesOf users: [Name]) throws -> [ActivityRegistration] {
        guard !users.isEmpty else { return [] }
        var list = TextArray()
        for user in users where !user.utf8.contains(0) { list.append(user.utf8) }
        return try adopt(users: list.literal)
    }

    /// Takes over activities of hubs without a heartbeat for 30 s.
    package func adoptOrphans() throws -> [ActivityRegistration] { try adopt(users: nil) }

    /// Takes over activities whose users are online at this hub and not at the one that has them.
    package func adoptReturned() throws -> [ActivityRegistration] { try adopt(users: nil, returned: true) }

    /// Takes over one activity, from whichever hub has it.
    package func adopt(_ id: Name) throws -> [ActivityRegistration] {
        guard !id.utf8.contains(0) else { return [] }
        return try adopt(users: nil, id: id)
    }

    private func adopt(
        users: String?, returned: Bool = false, id: Name? = nil
    ) throws -> [ActivityRegistration] {
        let parameters = [node, users, returned ? "t" : "f", id?.text]
        return try ActivityRow.all(connection.query(ActivityRow.statement(.adoptActivities), parameters))
            .map(\.activity)
    }

    /// Stores which states APNs accepted, so that they are not sent again after a restart: the timestamp of each activity.
    package func noteDelivered(_ timestamps: [Name: Int64]) throws {
        var ids = TextArray()
        var values = TextArray()
        for (id, timestamp) in timestamps.sorted(by: { $0.key < $1.key }) {
            ids.append(id.utf8)
            values.append(timestamp)
        }
        _ = try connection.query(ActivitySQL.noteDelivered, [ids.literal, values.literal])
    }

    /// Stores the posts of backends to this hub's activities, so that they outlive the process before they are sent.
    ///
    /// - Parameter posts: in the form of `PostedState.stored`.
    package func keep(posts: [Name: [UInt8]]) throws {
        var ids = TextArray()
        var values = TextArray()
        for (id, post) in posts.sorted(by: { $0.key < $1.key }) where !id.utf8.contains(0) && !post.contains(0) {
            ids.append(id.utf8)
            values.append(post)
        }
        _ = try connection.query(ActivitySQL.keepPosts, [node, ids.literal, values.literal])
    }

    /// Stores what is about to be sent, before it leaves. A stamp without a state is kept with an empty one.
    ///
    /// - Parameter stamps: each activity once.
    /// - Returns: an answer to each stamp, in order; only granted ones may be sent.
    package func stamp(_ stamps: [ActivityStamp]) throws -> [StampOutcome] {
        guard !stamps.isEmpty else { return [] }
        var ids = TextArray()
        var timestamps = TextArray()
        var versions = TextArray()
        var states = TextArray()
        var posted = TextArray()
        var posts = TextArray()
        for stamp in stamps {
            let state = stamp.state ?? Array("{}".utf8)
            guard !stamp.id.utf8.contains(0), !state.contains(0) else { continue }
            ids.append(stamp.id.utf8)
            timestamps.append(stamp.timestamp)
            versions.append(Int64(stamp.version))
            states.append(state)
            posted.append(stamp.isPosted)
            posts.append(stamp.post)
        }
        let rows = try connection.query(
            ActivityRow.statement(.stampActivities),
            [node, ids.literal, timestamps.literal, versions.literal, states.literal, posted.literal, posts.literal])
        var outcomes: [Name: StampOutcome] = [:]
        for row in 0..<rows.count {
            guard let id = rows.name(row, 0) else { continue }
            outcomes[id] =
                rows.flag(row, 1) ? .granted : OwnedActivity(rows, row, from: 2).map { .refused($0) } ?? .unknown
        }
        return stamps.map { outcomes[$0.id] ?? .unknown }
    }
}

/// A Live Activity, and the hub that updates it.
package struct OwnedActivity: Sendable, Equatable {
    package let activity: ActivityRegistration
    /// The name of the hub.
    package let node: String
    /// True if it is sent nothing any more.
    package let hasEnded: Bool
}

/// The outcome of an activity's registration.
package enum ActivityOutcome: Sendable, Equatable {
    /// The value has the last state sent to the activity, if it was known before.
    case registered(ActivityRegistration)
    /// The id belongs to another user: nothing has changed, and nothing about that activity is revealed.
    case othersActivity
    /// The user has too many activities that have not ended (`PushStore.activitiesPerUser`).
    case tooMany
}

/// The database's answer to an `ActivityStamp`.
package enum StampOutcome: Sendable, Equatable {
    /// The stamp is stored: its push may leave.
    case granted
    /// Another hub owns the activity, or it has ended, or it was already sent something as new; the value is its present state.
    case refused(OwnedActivity)
    /// No such activity is registered, or another session is writing to it at this moment: send nothing now.
    case unknown
}

/// The columns of `roost.push_activity` that the hub uses, in one order for all statements.
enum ActivityRow {
    private static let columns = """
        a.id, a.user_id, a.session, a.token, a.environment, a.bundle, a.conversation, a.node, \
        floor(extract(epoch from a.registered_at) * 1000)::bigint, \
        floor(extract(epoch from a.started_at) * 1000)::bigint, a.timestamp, a.version, a.state, a.ended_at is not null, \
        a.posted, a.delivered >= a.timestamp, a.post
        """

    /// Fills the columns into a statement in place of `{activity}`.
    static func statement(_ template: ActivitySQL) -> String {
        SQLTemplate(template.text).filled(["activity": columns])
    }

    /// Reads activities; leaves out rows that are not activities of roost's.
    static func all(_ rows: QueryResult) -> [OwnedActivity] {
        (0..<rows.count).compactMap { OwnedActivity(rows, $0, from: 0) }
    }
}

extension OwnedActivity {
    /// Nil if there is none.
    init?(_ rows: QueryResult, _ row: Int, from first: Int) {
        guard row < rows.count, let id = rows.name(row, first), let user = rows.name(row, first + 1),
            let destination = PushDestination(rows, row, from: first + 3), let node = rows.text(row, first + 7)
        else { return nil }
        activity = ActivityRegistration(
            id: id, user: user, session: rows.name(row, first + 2), destination: destination,
            conversation: rows.name(row, first + 6), registeredAt: rows.boundedInteger(row, first + 8) ?? 0,
            startedAt: rows.boundedInteger(row, first + 9) ?? 0, timestamp: rows.boundedInteger(row, first + 10) ?? 0,
            version: Int(rows.boundedInteger(row, first + 11) ?? 0),
            state: rows.bytes(row, first + 12).map { Array($0) },
            isPosted: rows.flag(row, first + 14), post: rows.bytes(row, first + 16).map { Array($0) },
            wasDelivered: rows.flag(row, first + 15))
        self.node = node
        hasEnded = rows.flag(row, first + 13)
    }
}

/// The answer of `live_activity.facts` about a conversation.
package enum FactsAnswer: Sendable, Equatable {
    /// As a JSON object.
    case row([UInt8])
    /// The user is not in the conversation, or may not see it.
    case noRow
    /// There was nothing to ask, or the statement failed.
    case unknown
}

extension PushStore {
    /// Asks for the conversation of an activity as its user sees it: the operator's statement (`live_activity.facts`) is run as that
    /// user. A statement that fails is logged, and counts as no answer.
    ///
    /// - Parameter statement: SQL with `$1`, the user, and `$2`, the conversation.
    package func facts(of activity: Name, statement: String) throws -> FactsAnswer {
        let bearer = try connection.query(ActivitySQL.bearerOfActivity, [activity.text])
        guard bearer.count == 1, let user = bearer.text(0, 0), let conversation = bearer.text(0, 1),
            let role = bearer.text(0, 2), let claims = bearer.text(0, 3)
        else { return .unknown }
        do {
            try connection.runScript(AudienceSQL.beginReading)
            _ = try connection.query(ActivitySQL.becomeUser, [role, claims])
            let wrapped = "select to_jsonb(f) from (\n\(AudienceStatement.bare(statement))\n) f limit 1"
            let rows = try connection.query(wrapped, [user, conversation])
            let answer = rows.count > 0 ? rows.bytes(0, 0).map { .row(Array($0)) } ?? .unknown : FactsAnswer.noRow
            try connection.runScript("commit")
            return answer
        } catch let error as PostgresError where !connection.isBroken {
            try connection.runScript("rollback")
            warnings.logWarning(
                "live_activity.facts fails, so a Live Activity waits for the next message; correct it, or what the role "
                    + "\(role) may read (\(error.message)).")
            return .unknown
        }
    }

    /// The statement for the sample chat.
    package static var factsOfSampleChat: String { SampleChatSQL.factsOfSampleChat.text }
}

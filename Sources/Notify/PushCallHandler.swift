import HTTP
import Hub
import Push
import Stores
import Wire

/// Carries out calls of the HTTP API, and answers them. Confined to the worker's thread.
struct PushCallHandler {
    let context: PushContext
    let activities: ActivityUpdater
    private let notifications: NotificationSender

    init(context: PushContext, activities: ActivityUpdater) {
        self.context = context
        self.activities = activities
        notifications = NotificationSender(context)
    }

    func answer(_ call: PushCall) -> HTTPResponse {
        guard let store = context.database.store else {
            return .pushProblem(503, "The database is away; try again in a moment.")
        }
        do {
            return try answer(call, store)
        } catch {
            context.database.failed(error)
            return .pushProblem(503, "The database did not take it; try again in a moment.")
        }
    }

    private func answer(_ call: PushCall, _ store: PushStore) throws -> HTTPResponse {
        switch call {
        case .registerDevice(let destination, let kind, let bearer, let old, let keys):
            let device = try store.register(destination, kind, by: bearer, replacing: old, keys: keys)
            context.outbox.registered(destination.token)
            return .push(
                200,
                Self.object(Self.service(of: device.destination) + [("tokenPrefix", destination.token.prefix)]))
        case .removeDevice(let token, let user):
            return try store.unregister(token, of: user)
                ? Self.done : .pushProblem(404, "No such token is registered by this user.")
        case .registerActivity(let id, let destination, let conversation, let bearer):
            return try register(id, destination, conversation, bearer, store)
        case .listActivities(let user): return .push(200, Self.list(try store.activities(of: user)))
        case .removeActivity(let id, let user):
            guard try store.remove(activity: id, of: user) != nil else {
                return .pushProblem(404, "No such Live Activity is registered by this user.")
            }
            activities.remove(id)
            return Self.done
        case .update(let id, let post): return try update(id, post, store)
        case .start(let user, let start): return try self.start(user, start, store)
        case .broadcast(let broadcast): return self.broadcast(broadcast)
        case .notify(let notification): return try notifications.answer(notification, store)
        }
    }

    private func register(
        _ id: Name, _ destination: PushDestination, _ conversation: Name?, _ bearer: PushBearer, _ store: PushStore
    ) throws -> HTTPResponse {
        switch try store.register(activity: id, at: destination, about: conversation, by: bearer) {
        case .registered(let activity):
            let wasBad = context.outbox.registered(destination.token)
            try activities.register(activity, about: conversation, wasBad: wasBad, store)
            return .push(200, Self.object([("activityId", id.text)] + Self.service(of: activity.destination)))
        case .othersActivity:
            return .pushProblem(409, "This activityId is registered by somebody else.")
        case .tooMany:
            return .pushProblem(
                409, "A user may have \(PushStore.activitiesPerUser) Live Activities; end one that is over.")
        }
    }

    // MARK: Backends

    private func update(_ id: Name, _ post: ActivityPost, _ store: PushStore) throws -> HTTPResponse {
        switch try activities.post(post, to: id, store) {
        case .queued: return .push(202, Self.object([("activityId", id.text), ("status", "queued")]))
        case .withheld: return .push(202, Self.object([("activityId", id.text), ("status", "withheld")]))
        case .stale: return .pushProblem(409, "A newer state of this Live Activity is known; this one is dropped.")
        case .unknown:
            context.logger.info(
                "an update for the Live Activity \(id.text.prefix(40)) was dropped: nobody has registered it")
            return .pushProblem(404, "No Live Activity of this id is registered; the update is dropped.")
        case .refused(let sentence): return .pushProblem(400, sentence)
        }
    }

    private func start(_ user: Name, _ call: StartCall, _ store: PushStore) throws -> HTTPResponse {
        let devices = try store.devices(of: user).filter { device in
            device.kind == .start(attributesType: call.start.attributesType)
                && (call.bundle.map { $0 == device.destination.bundle } ?? true)
                && !context.outbox.isBad(device.destination.token)
        }
        guard !devices.isEmpty else {
            return .pushProblem(
                404, "This user has no phone that can start this type: none registered a token of kind start for it.")
        }
        let time = context.now
        let payload = ActivityPayload(
            .start(call.start, alert: call.alert), timestamp: time.unix / 1000, contentState: call.state,
            staleDate: time.unix / 1000 + context.rules.activity.staleAfter)
        let bytes: [UInt8]
        do { bytes = try payload.bytes() } catch { return .pushProblem(400, "\(error)") }
        context.outbox.sendUntracked(
            devices.map { device in
                Push(
                    to: .device(device.destination), type: .liveActivity, priority: 10,
                    expiration: time.unix / 1000 + 3600, payload: bytes, deadline: time.unix + 3_600_000)
            })
        return .push(202, Array("{\"pushes\":\(devices.count)}".utf8))
    }

    private func broadcast(_ call: BroadcastCall) -> HTTPResponse {
        let time = context.now
        let timestamp = call.timestamp ?? time.unix / 1000
        let stale = time.unix / 1000 + context.rules.activity.staleAfter
        let broadcast =
            call.event == .end
            ? ChannelBroadcast.end(
                channel: call.channel, contentState: call.state, timestamp: timestamp, staleDate: stale,
                alert: call.alert, dismissal: call.dismissal)
            : ChannelBroadcast.update(
                channel: call.channel, contentState: call.state, timestamp: timestamp, staleDate: stale,
                alert: call.alert)
        let bytes: [UInt8]
        do { bytes = try broadcast.bytes() } catch { return .pushProblem(400, "\(error)") }
        context.outbox.sendUntracked([
            Push(
                to: .channel(id: call.channel, environment: call.environment, bundle: call.bundle), type: .liveActivity,
                priority: call.alert != nil || call.event == .end ? 10 : 5, expiration: stale, payload: bytes,
                deadline: stale * 1000)
        ])
        return .push(202, Self.object([("channelId", call.channel.text)]))
    }

    // MARK: Answers

    private static let done = HTTPResponse(status: 204, headers: [("access-control-allow-origin", "*")])

    /// Returns the service of a token; for Apple's its environment, the only thing that clients were ever told.
    private static func service(of destination: PushDestination) -> [(String, String)] {
        destination.kind == .apns
            ? [("environment", destination.environment.rawValue)] : [("kind", destination.kind.rawValue)]
    }

    private static func object(_ members: [(String, String)]) -> [UInt8] {
        JSONWriter.object { object in
            for (key, value) in members { object.writeMember(key, value) }
        }
    }

    /// Lists the activities of a user, with only the beginning of each token: a reader of the list could misuse the whole.
    private static func list(_ activities: [ActivityRegistration]) -> [UInt8] {
        JSONWriter.object { list in
            list.array("registrations", activities) { writer, activity in
                writer.object { object in
                    object.writeMember("activityId", activity.id.text)
                    for (key, value) in service(of: activity.destination) { object.writeMember(key, value) }
                    object.writeMember("tokenPrefix", activity.destination.token.prefix)
                    if let conversation = activity.conversation {
                        object.writeMember("conversationId", conversation.text)
                    }
                    // In seconds.
                    object.writeMember("registeredAt", activity.registeredAt / 1000)
                }
            }
        }
    }
}

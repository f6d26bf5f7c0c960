import ChangeFeed
import Hub
import Push
import Wire

/// Live Activities: what they are told of, written down, and sent.
extension DeskLoop {
    /// Looks after what is due, and about once a second at how phones stand and who types and is there.
    func tellActivities() {
        let time = now
        guard book.count > 0 else {
            _ = setup.whereabouts.joins.takeAll()
            return
        }
        if isTimeToLook(time.monotonic) || book.nextDue.map({ $0 <= time.monotonic }) ?? false { look(at: time) }
        guard book.nextDue.map({ $0 <= time.monotonic }) ?? false else { return }
        var stamps: [BookStamp] = []
        for action in book.advance(to: time) {
            switch action {
            case .stamp(let request): stamps.append(request)
            case .show(let state):
                setup.show(
                    ActivitySummary(
                        activity: state.id, user: state.user, timestamp: state.timestamp, event: state.event,
                        state: state.state))
            case .ended(let id):
                stopWatching(id)
                attempt { try $0.end(activities: [id]) }
            case .unsendable(let id, let error):
                logger.warning(
                    "A state of the Live Activity \(id) is not sent; see live_activity.content_state: \(error)")
            }
        }
        if !stamps.isEmpty { send(stamps) }
    }

    /// The timestamp is written down before anything leaves.
    private func send(_ stamps: [BookStamp]) {
        var outcomes: [StoredStampOutcome]?
        attempt { store in
            outcomes = try store.stamp(
                stamps.map {
                    StoredStamp(
                        id: $0.id, timestamp: $0.timestamp, version: $0.version, state: $0.state ?? Array("{}".utf8),
                        isPosted: $0.isPosted)
                })
        }
        let time = now
        guard let outcomes, outcomes.count == stamps.count else {
            for stamp in stamps { book.unstamped(stamp.id, timestamp: stamp.timestamp, at: time) }
            return
        }
        var pushes: [Push] = []
        for (stamp, outcome) in zip(stamps, outcomes) {
            switch outcome {
            case .granted:
                if let request = book.stamped(stamp.id, timestamp: stamp.timestamp, at: time) {
                    pushes.append(push(request, at: time))
                }
            case .refused(let owned) where owned.node == rules.node && !owned.hasEnded:
                book.refused(stamp.id, timestamp: stamp.timestamp, current: owned.activity, at: time)
            case .refused, .unknown:
                // Another hub has it, or nobody.
                book.remove(stamp.id)
                stopWatching(stamp.id)
            }
        }
        client.send(pushes)
    }

    private func push(_ request: BookStamp, at time: HubTime) -> Push {
        let push = Push(
            to: .device(request.destination), kind: .liveActivity, priority: request.priority,
            // An update that is out of date when the phone is back is of no use.
            expiration: request.event == .end ? time.unix / 1000 + 4 * 3600 : request.staleDate,
            payload: request.payload, lane: "activity " + request.id, replaces: true,
            deadline: request.staleDate * 1000)
        errands[push.id] = .activity(id: request.id, timestamp: request.timestamp)
        return push
    }

    func noteActivity(_ outcome: PushOutcome, _ id: String, _ timestamp: Int64) {
        let result: BookOutcome =
            switch outcome {
            case .delivered: .delivered
            case .unregistered: .gone
            case .unanswered: .unanswered
            case .badToken, .refused, .tooLarge: .failed(retryLater: false)
            case .superseded, .expired, .overflow, .stopped: .failed(retryLater: true)
            }
        if result == .delivered { delivered[id] = timestamp }
        book.sent(id, timestamp: timestamp, result, at: now)
    }

    // MARK: What they are about

    /// Takes activities into the book: those of the hub's last process, and those of other hubs.
    func take(_ activities: [ActivityRegistration], _ store: PushStore) throws {
        for activity in activities {
            let answer = try facts(of: activity.id, about: activity.conversation, store)
            book.put(
                activity, standing: standing(of: activity, at: now), facts: facts(answer),
                wasDelivered: activity.wasDelivered,
                isPosted: activity.isPosted, at: now)
            if answer == .noRow, activity.state != nil { leave(activity.id) }
            watch(activity)
        }
    }

    func watch(_ activity: ActivityRegistration) {
        guard let conversation = activity.conversation, topics[activity.id] == nil else { return }
        var variables = TemplateVariables()
        variables.set("conversation_id", conversation)
        let topic = rules.topic.text(variables)
        topics[activity.id] = topic
        if activitiesByTopic[topic] == nil { setup.whereabouts.watch(topic) }
        activitiesByTopic[topic, default: []].insert(activity.id)
    }

    func stopWatching(_ id: String) {
        askedAt[id] = nil
        guard let topic = topics.removeValue(forKey: id) else { return }
        activitiesByTopic[topic]?.remove(id)
        guard activitiesByTopic[topic]?.isEmpty == true else { return }
        activitiesByTopic[topic] = nil
        setup.whereabouts.forget(topic)
    }

    // MARK: Looking

    private func look(at time: HubTime) {
        for id in book.ids {
            guard let user = book.user(of: id) else { continue }
            let standing = standing(of: id, user, book.session(of: id), at: time)
            if book.standing(of: id) != standing { book.set(standing, of: id, at: time) }
        }
        for join in setup.whereabouts.joins.takeAll() where book.user(of: join.activity) == join.user {
            book.showAgain(join.activity, at: time)
        }
        for (topic, ids) in activitiesByTopic {
            let typists = setup.whereabouts.typists(in: topic, at: time.monotonic)
            let present = setup.whereabouts.present(in: topic)
            for id in ids { note(typists, present, of: id, at: time) }
        }
    }

    private func note(
        _ typists: [(user: String?, payload: [UInt8])], _ present: [String], of id: String, at time: HubTime
    ) {
        guard var facts = book.facts(of: id), let own = book.user(of: id) else { return }
        facts.typing = typists.filter { $0.user != own }.map { typist in
            JSON(trusted: typist.payload[...])["name"]?.string ?? typist.user ?? ""
        }
        facts.online = present.filter { $0 != own }
        if facts != book.facts(of: id) { book.set(facts, of: id, at: time) }
    }

    func standing(of activity: ActivityRegistration, at time: HubTime) -> Standing {
        standing(of: activity.id, activity.user, activity.session, at: time)
    }

    /// How the phone that shows an activity stands. Right after the hub's start it may still come back.
    func standing(of id: String, _ user: String, _ session: String?, at time: HubTime) -> Standing {
        let standing = setup.whereabouts.standing(of: user, session: session)
        guard standing == .away, time.monotonic < restartUntil, fromBefore.contains(id) else { return standing }
        return .inGrace(until: restartUntil)
    }
}

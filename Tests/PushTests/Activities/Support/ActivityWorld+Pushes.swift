import Hub
import Push
import Testing
import Wire

/// What becomes of the pushes under way.
extension ActivityWorld {
    mutating func run() throws {
        while let index = pending.firstIndex(where: { $0.at <= now.monotonic }) {
            let step = pending.remove(at: index)
            if step.isSending { try answer(step.request) } else { try write(step.request) }
        }
    }

    mutating func write(_ request: ActivityPush) throws {
        let (id, kind) = (request.id, isCalm ? 9 : dice.below(20))
        guard models[id] != nil else { return }
        switch kind {
        case 0:
            scheduler.unstamped(id, timestamp: request.timestamp, at: now)
            if models[Name(id.text)]?.version == request.stamp.version { models[Name(id.text)]?.version -= 1 }
            failed(Name(id.text))
        case 1: try refuse(request)
        default:
            models[Name(id.text)]?.write(
                request.timestamp, request.stamp.version, request.stamp.state, isPosted: request.stamp.isPosted)
            guard let sent = scheduler.stamped(id, timestamp: request.timestamp, at: now) else {
                models[Name(id.text)]?.isInFlight = false
                try demand(models[Name(id.text)]?.isAway == false, Name(id.text), "withdrawn")
                count("withdrawn")
                return
            }
            try leave(sent)
        }
    }

    mutating func leave(_ request: ActivityPush) throws {
        let model = try model(Name(request.id.text))
        try demand(model.isAway, Name(request.id.text), "pushed while its app is \(model.status)")
        try demand(
            request.destination == model.registration.destination, Name(request.id.text), "pushed to an old token")
        if let last = model.lastSend, !request.isAlerting, request.event == .update {
            try demand(
                now.monotonic - last >= 2_000, Name(request.id.text), "\(now.monotonic - last) ms after the last push")
        }
        models[Name(request.id.text)]?.lastSend = now.monotonic
        pending.append(PendingStep(request: request, isSending: true, at: now.monotonic + delay()))
        count(request.event == .end ? "end pushed" : request.isAlerting ? "alert pushed" : "pushed")
    }

    /// Another hub, which knows something else, was faster.
    mutating func refuse(_ request: ActivityPush) throws {
        let model = try model(Name(request.id.text))
        let timestamp = request.timestamp + Int64(dice.below(3))
        let isPosted = model.posted != nil || dice.below(8) == 0
        let wasDelivered = dice.below(2) == 0
        let state =
            isPosted
            ? #"{"of":"\#(request.id)","n":7}"#
            : """
            {"name":"\(request.id)","last":": ","unread":0,"typing":[],"online":[],"connected":false,\
            "version":\(request.stamp.version),"at":\(timestamp)}
            """
        models[Name(request.id.text)]?.write(
            timestamp, request.stamp.version, Array(state.utf8), isPosted: isPosted, wasDelivered: wasDelivered)
        let current = try self.model(Name(request.id.text)).registration
        if wasDelivered || dice.below(2) == 0 {
            models[Name(request.id.text)]?.reachPhone(timestamp, .update, current.state)
        }
        models[Name(request.id.text)]?.timestamp = max(model.timestamp, timestamp)
        models[Name(request.id.text)]?.floor = max(model.floor, timestamp)
        if isPosted, model.posted?.at ?? .min <= timestamp {
            models[Name(request.id.text)]?.posted = ActivityModel.Post(state: state, at: timestamp)
        }
        scheduler.refused(request.id, timestamp: request.timestamp, current: current, at: now)
        failed(Name(request.id.text))
        count("refused")
    }

    mutating func deliver(_ request: ActivityPush, isKnown: Bool = false) {
        if isKnown, let model = models[request.id], model.registration.timestamp == request.timestamp {
            models[Name(request.id.text)]?.write(
                request.timestamp, request.stamp.version, request.stamp.state, isPosted: request.stamp.isPosted,
                wasDelivered: true)
        }
        // A phone has one activity, whatever its token.
        models[Name(request.id.text)]?.reachPhone(request.timestamp, request.event, request.stamp.state)
    }

    mutating func answer(_ request: ActivityPush) throws {
        let (id, isOld) = (request.id, models[Name(request.id.text)]?.registration.destination != request.destination)
        guard models[id] != nil else { return }
        let outcome: ActivityPush.Outcome =
            isCalm
            ? .delivered
            : dice.pick([
                .delivered, .delivered, .delivered, .delivered, .unanswered, .unanswered, .failed(retryLater: true),
                .failed(retryLater: false), isOld ? .gone(since: nil) : .delivered,
                dice.below(6) == 0 ? .gone(since: nil) : .delivered,
            ])
        switch outcome {
        case .delivered: deliver(request, isKnown: true)
        case .unanswered where dice.below(2) == 0: deliver(request)
        case .gone where !isOld: models[Name(id.text)]?.isEnding = true
        case .failed(retryLater: false) where !isOld: models[Name(id.text)]?.wasGivenUp = true
        default: break
        }
        scheduler.sent(id, timestamp: request.timestamp, outcome, at: now)
        failed(Name(id.text), isHarmless: outcome == .delivered)
        count("\(outcome)")
    }

    mutating func failed(_ id: Name, isHarmless: Bool = false) {
        models[id]?.isInFlight = false
        models[id]?.owedSince = nil
        if !isHarmless { models[id]?.patience = 60_000 }
    }
}

/// What the phones are owed.
extension ActivityWorld {
    /// A phone that is away, and shows what is not so any more, is told within ten seconds, the way of a push aside.
    mutating func check() throws {
        for (id, model) in models {
            let isOwed = model.isAway && !model.isInFlight && !model.wasGivenUp && !model.isTold(by: model.phone.state)
            guard isOwed else {
                models[id]?.owedSince = nil
                continue
            }
            let since = model.owedSince ?? now.monotonic
            models[id]?.owedSince = since
            try demand(
                now.monotonic - since <= model.patience, id, "nothing was told for \(now.monotonic - since) ms")
        }
    }

    /// Everything works again, and nothing happens any more: in the end every phone is right, and is left alone.
    mutating func settle() throws {
        isCalm = true
        for (id, model) in models {
            let isDying = !model.isEnding && model.endsAt - now.monotonic < 1_000_000
            guard model.wasGivenUp || isDying else { continue }
            if model.posted == nil, !isDying {
                models[id]?.facts.unread = 77
                scheduler.change(id, at: now) { $0.unread = 77 }
            } else {
                models[id] = nil
                scheduler.remove(id)
            }
        }
        try pass(120_000)
        for (id, model) in models {
            let phone = model.phone.state?.description ?? "nothing"
            try demand(model.isTold(by: model.phone.state) || model.status.isInGrace, id, "shows \(phone) at the end")
            try demand(!(model.isEnding && model.isAway), id, "was never ended")
        }
        let told = seen
        try pass(100_000)
        try demand(told == seen, "all", "told what they know: \(told), \(seen)")
    }
}

extension ConnectionStatus {
    fileprivate var isInGrace: Bool { if case .inGrace = self { true } else { false } }
}

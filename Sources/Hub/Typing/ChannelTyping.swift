import OrderedCollections
package import Wire

/// The users typing in a channel, and what its members on one loop are told about it.
///
/// A set: a user in it is announced once, and again when its signal changes or at most once in a while, so that clients
/// with timers of their own see that the typing goes on. The loop that receives a start or an end relays it; each loop
/// decides what its own members are told, and ends typing that is not renewed by itself.
struct ChannelTyping {
    /// An announcement to the members.
    struct Notice {
        let signal: TypingSignal
        let isTyping: Bool
        let except: Slot?
    }

    private var typists: OrderedDictionary<ChannelTypist.ID, ChannelTypist> = [:]
    private var starts = TokenBucket()
    private(set) var shownCount = 0
    /// When members were last told of any typing.
    private(set) var lastNotice = Int64.min / 2

    var isEmpty: Bool { typists.isEmpty }

    /// The number of users typing, including those not announced.
    var count: Int { typists.values.count { $0.state != .ended } }

    /// Returns some of them, with what their clients say of them.
    func typists(_ limit: Int) -> [(user: Name?, payload: [UInt8])] {
        var all: [(user: Name?, payload: [UInt8])] = []
        for (id, typist) in typists where typist.state != .ended && all.count < limit {
            if case .user(let user) = id {
                all.append((user, typist.signal.typingPayload))
            } else {
                all.append((nil, typist.signal.typingPayload))
            }
        }
        return all
    }

    var shown: [TypingSignal] { typists.values.filter { $0.state == .shown }.map(\.signal) }

    mutating func startTypist(
        _ id: ChannelTypist.ID, _ signal: TypingSignal, member: MemberID?, origin: Slot?, rules: TypingRules,
        at now: Int64
    ) -> [Notice] {
        var typist = typists[id] ?? ChannelTypist(signal: signal, state: .waiting, until: 0)
        let isSame = signal.says(theSameAs: typist.signal)
        if typist.state == .ended { typist.state = .waiting }
        typist.signal = signal
        typist.until = now + rules.silence
        typist.member = member
        typist.origin = origin
        defer { typists[id] = typist }
        switch typist.state {
        case .shown:
            guard !isSame || now - typist.shownAt >= rules.rhythm && takeStart(rules, at: now) else { return [] }
        case .waiting, .ended:
            guard mayShow(typist, rules, at: now) else { return [] }
            shownCount += 1
            typist.state = .shown
        }
        return [startNotice(&typist, at: now)]
    }

    /// Ends typing that the client did not end itself.
    ///
    /// - Returns: whether the typist was in the set, and the resulting notices.
    mutating func stopTypist(_ id: ChannelTypist.ID, rules: TypingRules, at now: Int64) -> (wasIn: Bool, [Notice]) {
        guard var typist = typists[id], typist.state != .ended else { return (false, []) }
        let wasShown = typist.state == .shown
        typist.state = .ended
        if wasShown { typist.endedAt = now }
        typists[id] = typist
        guard wasShown else { return (true, []) }
        return (true, [endNotice(typist, at: now)] + showWaiting(rules, at: now))
    }

    /// Ends typing at the client's own request. Its message is passed on unless members know: they were just told the
    /// same, or never told of a start.
    ///
    /// - Returns: nil if nothing has to be sent anywhere.
    mutating func stopTypist(
        _ id: ChannelTypist.ID, _ signal: TypingSignal, origin: Slot?, rules: TypingRules, at now: Int64
    ) -> [Notice]? {
        var typist = typists[id] ?? ChannelTypist(signal: signal, state: .ended, until: 0)
        let (state, isKnown) = (typist.state, typists[id] != nil)
        if state == .ended {
            guard !isKnown || !signal.says(theSameAs: typist.signal), takeStart(rules, at: now) else { return nil }
        }
        typist.signal = signal
        typist.origin = origin
        typist.state = .ended
        if state != .waiting { typist.endedAt = now }
        typists[id] = typist
        switch state {
        case .waiting: return []
        case .shown: return [endNotice(typist, at: now)] + showWaiting(rules, at: now)
        case .ended: return [Notice(signal: signal, isTyping: false, except: origin)]
        }
    }

    /// Removes a typist silently.
    ///
    /// - Returns: nil if it was not in the set.
    mutating func removeTypist(_ id: ChannelTypist.ID, rules: TypingRules, at now: Int64) -> [Notice]? {
        guard let typist = typists.removeValue(forKey: id), typist.state != .ended else { return nil }
        if typist.state == .shown { shownCount -= 1 }
        return showWaiting(rules, at: now)
    }

    /// Returns the typists that this member started.
    func ids(of member: MemberID) -> [ChannelTypist.ID] {
        typists.compactMap { $1.member == member && $1.state != .ended ? $0 : nil }
    }

    /// Ends typing that was not renewed, and announces typists that had to wait.
    mutating func advanceTime(_ rules: TypingRules, at now: Int64) -> [Notice] {
        var notices: [Notice] = []
        for (id, typist) in typists {
            switch typist.state {
            case .shown where typist.until <= now:
                typists[id]?.state = .ended
                typists[id]?.endedAt = now
                notices.append(endNotice(typist, at: now))
            case .waiting where typist.until <= now: typists[id]?.state = .ended
            case .shown, .waiting, .ended: break
            }
        }
        typists.removeAll { $1.state == .ended && $1.rememberedUntil(rules) <= now }
        return notices + showWaiting(rules, at: now)
    }

    /// Returns the next time at which `advanceTime` has something to do.
    func nextDue(_ rules: TypingRules, at now: Int64) -> Int64? {
        let isFull = shownCount >= rules.shown
        return typists.values.map { typist in
            switch typist.state {
            case .shown: typist.until
            case .ended: typist.rememberedUntil(rules)
            case .waiting:
                isFull ? typist.until : min(typist.until, max(typist.shownAt + rules.rhythm, now + Self.retry))
            }
        }.min()
    }

    /// Milliseconds until a start that exceeded the rate is tried again.
    private static let retry: Int64 = 50

    // MARK: Room

    private func mayWait(_ typist: ChannelTypist, _ rules: TypingRules, at now: Int64) -> Bool {
        shownCount >= rules.shown || now - typist.shownAt < rules.rhythm
    }

    private mutating func mayShow(_ typist: ChannelTypist, _ rules: TypingRules, at now: Int64) -> Bool {
        !mayWait(typist, rules, at: now) && takeStart(rules, at: now)
    }

    private mutating func takeStart(_ rules: TypingRules, at now: Int64) -> Bool {
        guard let rate = Rate(perSecond: rules.shown, burst: rules.shown) else { return true }
        return starts.takeTokens(of: rate, at: now)
    }

    /// Announces waiting typists, in order, as far as there is room.
    private mutating func showWaiting(_ rules: TypingRules, at now: Int64) -> [Notice] {
        guard shownCount < rules.shown else { return [] }
        var notices: [Notice] = []
        for (id, typist) in typists where typist.state == .waiting && typist.until > now {
            guard mayShow(typist, rules, at: now) else { continue }
            var typist = typist
            typist.state = .shown
            shownCount += 1
            notices.append(startNotice(&typist, at: now))
            typists[id] = typist
        }
        return notices
    }

    private mutating func startNotice(_ typist: inout ChannelTypist, at now: Int64) -> Notice {
        typist.shownAt = now
        lastNotice = now
        return Notice(signal: typist.signal, isTyping: true, except: typist.origin)
    }

    private mutating func endNotice(_ typist: ChannelTypist, at now: Int64) -> Notice {
        shownCount -= 1
        lastNotice = now
        return Notice(signal: typist.signal, isTyping: false, except: typist.origin)
    }
}

/// A typist in one channel, as one loop sees it.
package struct ChannelTypist {
    /// The identity of a typist: a user is one, however many sockets it has; without a user, each socket is one.
    package enum ID: Hashable, Sendable {
        case user(Name)
        case member(MemberID)
        /// Sent over HTTP with a token without a user: identified by the payload.
        case payload([UInt8])
    }

    enum State {
        /// Members were told.
        case shown
        /// Members are told when there is room, or when enough time has passed since the last notice.
        case waiting
        /// Kept for a moment to know what members were last told, and when.
        case ended
    }

    var signal: TypingSignal
    var state: State
    /// When the typing ends by itself, in monotonic milliseconds.
    var until: Int64
    var shownAt = Int64.min / 2
    /// When members were told of the end. For as long as a start would have lasted, another end is not passed on.
    var endedAt = Int64.min / 2
    /// The member that last sent a signal, if it is on this loop, and the socket that is not told because it knows.
    var member: MemberID?
    var origin: Slot?

    /// Returns the time until which it is remembered what members were last told.
    func rememberedUntil(_ rules: TypingRules) -> Int64 { max(shownAt + rules.rhythm, endedAt + rules.silence) }
}

import OrderedCollections
package import Wire

/// Who types in a channel, and what its members on one loop are told of it.
///
/// A set: whoever is in it is told of once, and again when it says something else, or at most once in a while so that
/// clients with clocks of their own see that it goes on. The loop that hears of a start or an end relays it; what is told, each decides for its own members,
/// and each ends by itself what nobody renews.
struct ChannelTyping {
    /// What the members are to be told.
    struct Notice {
        let signal: TypingSignal
        let isTyping: Bool
        let except: Slot?
    }

    private var typists: OrderedDictionary<ChannelTypist.ID, ChannelTypist> = [:]
    private var starts = TokenBucket()
    private(set) var shownCount = 0
    /// When anybody was told of anything last.
    private(set) var lastNotice = Int64.min / 2

    var isEmpty: Bool { typists.isEmpty }

    /// Users who type, those included whom nobody was told of.
    var count: Int { typists.values.count { $0.state != .ended } }

    /// Some of them, with what they say of themselves.
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

    mutating func start(
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
        return [started(&typist, at: now)]
    }

    /// Ends what its typist does not end itself.
    ///
    /// - Returns: whether it was in the set, and what follows.
    mutating func stop(_ id: ChannelTypist.ID, rules: TypingRules, at now: Int64) -> (wasIn: Bool, [Notice]) {
        guard var typist = typists[id], typist.state != .ended else { return (false, []) }
        let wasShown = typist.state == .shown
        typist.state = .ended
        if wasShown { typist.endedAt = now }
        typists[id] = typist
        guard wasShown else { return (true, []) }
        return (true, [ended(typist, at: now)] + promote(rules, at: now))
    }

    /// What a typist says of its end itself, in its own words. It is passed on unless the others know: they were told the
    /// same just now, or of no start.
    ///
    /// - Returns: nil where nothing is to be said of it anywhere.
    mutating func stop(
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
        case .shown: return [ended(typist, at: now)] + promote(rules, at: now)
        case .ended: return [Notice(signal: signal, isTyping: false, except: origin)]
        }
    }

    /// Takes a user out of the set of whom nothing is to be said any more.
    ///
    /// - Returns: nil where it was not in it.
    mutating func forget(_ id: ChannelTypist.ID, rules: TypingRules, at now: Int64) -> [Notice]? {
        guard let typist = typists.removeValue(forKey: id), typist.state != .ended else { return nil }
        if typist.state == .shown { shownCount -= 1 }
        return promote(rules, at: now)
    }

    /// Whom this member made a typist.
    func ids(of member: MemberID) -> [ChannelTypist.ID] {
        typists.compactMap { $1.member == member && $1.state != .ended ? $0 : nil }
    }

    /// Ends what nobody renewed, and tells of those who had to wait.
    mutating func advance(_ rules: TypingRules, at now: Int64) -> [Notice] {
        var notices: [Notice] = []
        for (id, typist) in typists {
            switch typist.state {
            case .shown where typist.until <= now:
                typists[id]?.state = .ended
                typists[id]?.endedAt = now
                notices.append(ended(typist, at: now))
            case .waiting where typist.until <= now: typists[id]?.state = .ended
            case .shown, .waiting, .ended: break
            }
        }
        typists.removeAll { $1.state == .ended && $1.rememberedUntil(rules) <= now }
        return notices + promote(rules, at: now)
    }

    /// When `advance` has something to do.
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

    /// Milliseconds until a start that was over the rate is looked at again.
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
        return starts.take(of: rate, at: now)
    }

    /// Those who wait are shown, the first one first, as far as there is room.
    private mutating func promote(_ rules: TypingRules, at now: Int64) -> [Notice] {
        guard shownCount < rules.shown else { return [] }
        var notices: [Notice] = []
        for (id, typist) in typists where typist.state == .waiting && typist.until > now {
            guard mayShow(typist, rules, at: now) else { continue }
            var typist = typist
            typist.state = .shown
            shownCount += 1
            notices.append(started(&typist, at: now))
            typists[id] = typist
        }
        return notices
    }

    private mutating func started(_ typist: inout ChannelTypist, at now: Int64) -> Notice {
        typist.shownAt = now
        lastNotice = now
        return Notice(signal: typist.signal, isTyping: true, except: typist.origin)
    }

    private mutating func ended(_ typist: ChannelTypist, at now: Int64) -> Notice {
        shownCount -= 1
        lastNotice = now
        return Notice(signal: typist.signal, isTyping: false, except: typist.origin)
    }
}

/// Somebody who types, to one channel of one loop.
package struct ChannelTypist {
    /// A user is one typist, with however many sockets; without a user, each socket is.
    package enum ID: Hashable, Sendable {
        case user(Name)
        case member(MemberID)
        /// Sent over HTTP with a token that names nobody: what it says of itself tells it from others.
        case payload([UInt8])
    }

    enum State {
        /// The others know.
        case shown
        /// They are told when there is room, or when enough time has passed since they were told last.
        case waiting
        /// Kept for a moment to know what the others were told last, and when.
        case ended
    }

    var signal: TypingSignal
    var state: State
    /// Ends by itself then, in monotonic milliseconds.
    var until: Int64
    var shownAt = Int64.min / 2
    /// When the others were told that it has ended. For as long as a start would have held, saying so again is not passed on.
    var endedAt = Int64.min / 2
    /// Who said so last, if it was on this loop, and which socket is not told because it knows.
    var member: MemberID?
    var origin: Slot?

    /// For how long it is known what the others were told of it last.
    func rememberedUntil(_ rules: TypingRules) -> Int64 { max(shownAt + rules.rhythm, endedAt + rules.silence) }
}

import OrderedCollections
import Synchronization
package import Wire

/// Which users are online: a user with several sockets is as long as one of them lives or is in its grace window.
///
/// One for all loops; safe from any thread, all of it behind one lock that is held for a look-up. Whoever writes the
/// transitions to a table takes them from here, the newest for each user.
package final class UserPresence: Sendable {
    private struct User {
        var sockets = 0
        /// Of the sockets, those of which it is known whether somebody answers.
        var liveness: [SocketLiveness] = []
        /// Until when the user counts as online without a socket, in monotonic milliseconds.
        var graceUntil: Int64 = .min
        /// The same, where the app was on the screen when its socket was lost, or a moment before, as one is that is locked.
        var shownUntil: Int64 = .min
        /// When the last socket was lost, in milliseconds since 1970.
        var lostAt: Int64 = 0
        var onlineSince: Int64 = 0
    }

    private struct State {
        var users: [Name: User] = [:]
        /// Who is in a grace window.
        var waiting: Set<Name> = []
        var transitions: OrderedDictionary<Name, UserTransition> = [:]
        /// Whose sockets are asked every few seconds whether somebody is there.
        var watched: Set<Name> = []
        var isDraining = false
    }

    private let state = Mutex(State())
    private let notesTransitions: Bool

    /// - Parameter notesTransitions: whether somebody takes them.
    package init(notesTransitions: Bool = true) {
        self.notesTransitions = notesTransitions
    }

    /// A socket of this user is there.
    package func enter(_ user: Name, by socket: SocketLiveness? = nil, at now: HubTime) {
        state.withLock { state in
            let wasKnown = state.users[user] != nil
            var known = state.users[user] ?? User()
            known.sockets += 1
            if let socket { known.liveness.append(socket) }
            (known.graceUntil, known.shownUntil) = (.min, .min)
            state.users[user] = known
            state.waiting.remove(user)
            if state.watched.contains(user) { socket?.watch(true) }
            if !wasKnown {
                state.users[user]?.onlineSince = now.unix
                note(UserTransition(user: user, isOnline: true, at: now.unix), &state)
            }
        }
    }

    /// A socket of this user is gone.
    ///
    /// - Parameter window: milliseconds for which it counts as there; 0 for one that took its leave.
    package func leave(_ user: Name, by socket: SocketLiveness? = nil, window: Int64, at now: HubTime) {
        state.withLock { state in
            guard var known = state.users[user], known.sockets > 0 else { return }
            known.sockets -= 1
            if let socket { known.liveness.removeAll { $0 === socket } }
            known.lostAt = now.unix
            known.graceUntil = max(known.graceUntil, now.monotonic + window)
            if socket?.latest.appState != .background {
                known.shownUntil = max(known.shownUntil, now.monotonic + window)
            }
            state.users[user] = known
            guard known.sockets == 0 else { return }
            state.waiting.insert(user)
            end(&state, at: now.monotonic)
        }
    }

    /// Ends the windows that are over. To be called once a second or so.
    package func advance(to now: HubTime) {
        state.withLock { end(&$0, at: now.monotonic) }
    }

    /// The hub stops: from here on nobody goes offline, as all are expected back.
    package func drain() {
        state.withLock { $0.isDraining = true }
    }

    /// Users that were online when the hub's last process ended.
    ///
    /// - Parameters:
    ///   - users: with the time they are said to be seen last, if they do not come back; in milliseconds since 1970.
    ///   - until: when that shows, in monotonic milliseconds.
    package func restore(_ users: [(user: Name, seen: Int64)], until: Int64) {
        state.withLock { state in
            for (user, seen) in users where state.users[user] == nil {
                state.users[user] = User(
                    sockets: 0, graceUntil: until, shownUntil: until, lostAt: seen, onlineSince: seen)
                state.waiting.insert(user)
            }
        }
    }

    package func isOnline(_ user: Name) -> Bool { state.withLock { $0.users[user] != nil } }

    /// Whether the user is connected, as far as this hub knows. Whose sockets all owe a proof is as good as cut off since the last one.
    ///
    /// - Parameter now: monotonic milliseconds.
    package func status(of user: Name, at now: Int64) -> ConnectionStatus {
        let found = state.withLock { state in
            state.users[user].map { (sockets: $0.sockets, liveness: $0.liveness, graceUntil: $0.graceUntil) }
        }
        guard let found else { return .away }
        guard found.sockets > 0 else { return .inGrace(until: found.graceUntil) }
        guard found.liveness.count == found.sockets else { return .live }
        var until = Int64.min
        for state in found.liveness.lazy.map(\.latest) {
            guard state.isSilent(at: now) else { return .live }
            until = max(until, state.provenAt + state.window)
        }
        return until > now ? .inGrace(until: until) : .away
    }

    /// Where the user may be asked what has arrived.
    ///
    /// - Parameter demandsShown: only apps count that were on the screen when they were cut off, or a moment before.
    package func sockets(of user: Name, demandsShown: Bool) -> UserSockets {
        let found = state.withLock { state in
            state.users[user].map { ($0.sockets, $0.liveness, demandsShown ? $0.shownUntil : $0.graceUntil) }
        }
        guard let (count, liveness, until) = found else { return UserSockets(places: [], graceUntil: nil) }
        return UserSockets(places: liveness.map(\.place), graceUntil: count == 0 ? until : nil)
    }

    /// Whether an app of the user's is certainly on the screen.
    ///
    /// - Parameter now: monotonic milliseconds.
    package func isShown(_ user: Name, at now: Int64) -> Bool {
        let sockets = state.withLock { $0.users[user]?.liveness ?? [] }
        return sockets.lazy.map(\.latest).contains { $0.isShown && !$0.isSilent(at: now) }
    }

    /// Whether the user has a socket that was opened after a moment, in monotonic milliseconds, and whose app is on the screen.
    package func hasReturned(_ user: Name, since moment: Int64) -> Bool {
        let sockets = state.withLock { $0.users[user]?.liveness ?? [] }
        return sockets.contains { $0.openedAt > moment && $0.latest.isShown && $0.latest.provenAt > $0.openedAt }
    }

    /// Begins, or ends, to ask the user's sockets every few seconds whether somebody is there.
    package func watch(_ user: Name, _ isWatched: Bool) {
        let sockets = state.withLock { state in
            if isWatched { state.watched.insert(user) } else { state.watched.remove(user) }
            return state.users[user]?.liveness ?? []
        }
        for socket in sockets { socket.watch(isWatched) }
    }

    package var count: Int { state.withLock { $0.users.count } }

    // MARK: Writing

    /// What is to be written, the oldest first; it counts as written from here on.
    package func take(upTo limit: Int = .max) -> [UserTransition] {
        state.withLock { state in
            let batch = Array(state.transitions.values.prefix(limit))
            state.transitions.removeFirst(batch.count)
            return batch
        }
    }

    /// They could not be written: they come again, unless there is a newer word on the user.
    package func giveBack(_ batch: [UserTransition]) {
        state.withLock { state in
            var merged: OrderedDictionary<Name, UserTransition> = [:]
            merged.reserveCapacity(batch.count + state.transitions.count)
            for transition in batch where state.transitions[transition.user] == nil {
                merged[transition.user] = transition
            }
            for (user, newer) in state.transitions { merged[user] = newer }
            state.transitions = merged
        }
    }

    /// They wait for another time, behind what is there, unless there is a newer word on the user.
    package func putBehind(_ batch: [UserTransition]) {
        guard !batch.isEmpty else { return }
        state.withLock { state in
            for transition in batch where state.transitions[transition.user] == nil {
                state.transitions[transition.user] = transition
            }
        }
    }

    package var hasTransitions: Bool { state.withLock { !$0.transitions.isEmpty } }

    // MARK: Under the lock

    private func end(_ state: inout State, at now: Int64) {
        guard !state.isDraining else { return }
        for user in state.waiting {
            guard let known = state.users[user], known.graceUntil <= now else { continue }
            state.waiting.remove(user)
            state.users[user] = nil
            note(UserTransition(user: user, isOnline: false, at: known.lostAt), &state)
        }
    }

    private func note(_ transition: UserTransition, _ state: inout State) {
        guard notesTransitions else { return }
        // At the end of the queue, also where an older word on the user waits.
        state.transitions[transition.user] = nil
        state.transitions[transition.user] = transition
    }
}

/// A user came online or went offline.
package struct UserTransition: Sendable, Equatable {
    /// The claim `sub`.
    package let user: Name
    package let isOnline: Bool
    /// When, in milliseconds since 1970: for one who went, when the last socket was heard of, not when its window ended.
    package let at: Int64

    package init(user: Name, isOnline: Bool, at: Int64) {
        self.user = user
        self.isOnline = isOnline
        self.at = at
    }
}

/// A user's sockets on this hub.
package struct UserSockets: Sendable, Equatable {
    package let places: [SocketPlace]
    /// Without sockets: until when the last one's user may take to come back, in monotonic milliseconds; nil where there is a socket, or
    /// nobody to come back.
    package let graceUntil: Int64?

    package init(places: [SocketPlace], graceUntil: Int64?) {
        self.places = places
        self.graceUntil = graceUntil
    }
}

/// Whether a user, or one of a user's devices, is connected to this hub.
package enum ConnectionStatus: Sendable, Equatable {
    /// At least one socket is alive.
    case live
    /// The last socket is lost, and its grace window is open until then, in monotonic milliseconds.
    case inGrace(until: Int64)
    /// There is no socket, and no grace window is open.
    case away
}

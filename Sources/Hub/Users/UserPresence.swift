import OrderedCollections
import Synchronization
package import Wire

/// The users that are online: a user with several sockets is online as long as one of them is alive or in its grace
/// window.
///
/// Shared by all loops; safe from any thread, behind one lock that is held for a look-up. A writer that stores the
/// transitions in a table takes them from here, the latest for each user.
package final class UserPresence: Sendable {
    private struct User {
        var sockets: Int32 = 0
        /// One of the sockets, and the others, as far as they may be asked about receipts: nearly all users have one.
        var place: SocketPlace?
        var others: [SocketPlace] = []
        var onlineSince: Int64 = 0

        mutating func addPlace(_ new: SocketPlace) {
            if place == nil { place = new } else { others.append(new) }
        }

        mutating func removePlace(_ old: SocketPlace) {
            if place == old {
                place = others.popLast()
            } else if let index = others.firstIndex(of: old) {
                others.remove(at: index)
            }
        }
    }

    /// How long a user counts as present that has lost a socket and opened none since.
    private struct Grace {
        /// In monotonic milliseconds.
        var until: Int64
        /// The same for apps that were on the screen when they lost their socket, or a moment before, like one on a
        /// phone that is locked.
        var shownUntil: Int64
        /// When the last socket was lost, in milliseconds since 1970.
        var lostAt: Int64
    }

    private struct State {
        var users: [Name: User] = [:]
        /// Users that have lost a socket; those without any socket left may come back.
        var graces: [Name: Grace] = [:]
        var transitions: OrderedDictionary<Name, UserTransition> = [:]
        /// Watched users, with those of their sockets that are asked for a sign of life every few seconds.
        var watched: [Name: [SocketLiveness]] = [:]
        /// Sockets whose apps reported that they are not on the screen.
        var hidden: Set<SocketPlace> = []
        var isDraining = false
    }

    private let state = Mutex(State())
    private let changesOfWatched = Atomic(0)
    private let notesTransitions: Bool

    /// - Parameter notesTransitions: whether transitions are recorded for a writer.
    package init(notesTransitions: Bool = true) {
        self.notesTransitions = notesTransitions
    }

    /// Adds a socket of a user.
    ///
    /// - Parameter place: the socket to ask about receipts; nil if it is not to be asked.
    package func socketOpened(_ user: Name, from place: SocketPlace? = nil, at now: HubTime) {
        state.withLock { state in
            let wasKnown = state.users[user] != nil
            var known = state.users[user] ?? User(onlineSince: now.unix)
            known.sockets += 1
            if let place { known.addPlace(place) }
            state.users[user] = known
            state.graces[user] = nil
            if !wasKnown { recordTransition(UserTransition(user: user, isOnline: true, at: now.unix), &state) }
        }
    }

    /// Removes a socket of a user.
    ///
    /// - Parameters:
    ///   - wasShown: whether its app was on the screen, or a moment before.
    ///   - window: milliseconds for which it still counts as present; 0 for one that left on purpose.
    package func socketClosed(
        _ user: Name, from place: SocketPlace? = nil, wasShown: Bool = true, window: Int64, at now: HubTime
    ) {
        state.withLock { state in
            guard var known = state.users[user], known.sockets > 0 else { return }
            known.sockets -= 1
            if let place {
                known.removePlace(place)
                state.hidden.remove(place)
            }
            state.users[user] = known
            var grace = state.graces[user] ?? Grace(until: .min, shownUntil: .min, lostAt: now.unix)
            grace.lostAt = now.unix
            grace.until = max(grace.until, now.monotonic + window)
            if wasShown { grace.shownUntil = max(grace.shownUntil, now.monotonic + window) }
            state.graces[user] = grace
            if known.sockets == 0 { endWindows(&state, at: now.monotonic) }
        }
    }

    /// Ends windows that are over. Call about once a second.
    package func advanceTime(to now: HubTime) {
        state.withLock { endWindows(&$0, at: now.monotonic) }
    }

    /// Stops taking users offline while the hub shuts down, as all are expected back.
    package func startDraining() {
        state.withLock { $0.isDraining = true }
    }

    /// Restores users that were online when the hub's last process ended.
    ///
    /// - Parameters:
    ///   - users: with the time at which they were last seen, in case they do not come back; in milliseconds since
    ///     1970.
    ///   - until: when they count as gone, in monotonic milliseconds.
    package func restoreUsers(_ users: [(user: Name, seen: Int64)], until: Int64) {
        state.withLock { state in
            for (user, seen) in users where state.users[user] == nil {
                state.users[user] = User(onlineSince: seen)
                state.graces[user] = Grace(until: until, shownUntil: until, lostAt: seen)
            }
        }
    }

    package func isOnline(_ user: Name) -> Bool { state.withLock { $0.users[user] != nil } }

    /// Returns whether the user is connected, as far as this hub knows. A watched user whose sockets all owe a proof
    /// counts as cut off since the last proof.
    ///
    /// - Parameter now: monotonic milliseconds.
    package func status(of user: Name, at now: Int64) -> ConnectionStatus {
        let found = state.withLock { state in
            state.users[user].map { (sockets: $0.sockets, liveness: state.watched[user], grace: state.graces[user]) }
        }
        guard let found else { return .away }
        guard found.sockets > 0 else { return found.grace.map { .inGrace(until: $0.until) } ?? .away }
        guard let liveness = found.liveness, liveness.count == found.sockets else { return .live }
        var until = Int64.min
        for state in liveness.lazy.map(\.latest) {
            guard state.isSilent(at: now) else { return .live }
            until = max(until, state.provenAt + state.window)
        }
        return until > now ? .inGrace(until: until) : .away
    }

    /// Returns the sockets that may be asked about the user's receipts.
    ///
    /// - Parameter demandsShown: whether only apps count that were on the screen when they were cut off, or a moment
    ///   before.
    package func sockets(of user: Name, demandsShown: Bool) -> UserSockets {
        state.withLock { state in
            guard let known = state.users[user] else { return UserSockets(places: [], graceUntil: nil) }
            guard known.sockets == 0 else {
                return UserSockets(places: (known.place.map { [$0] } ?? []) + known.others, graceUntil: nil)
            }
            let grace = state.graces[user]
            return UserSockets(places: [], graceUntil: demandsShown ? grace?.shownUntil : grace?.until)
        }
    }

    /// Whether a socket of the user belongs to an app on the screen, as far as apps report that.
    package func isShown(_ user: Name) -> Bool {
        state.withLock { state in
            guard let known = state.users[user], let place = known.place else { return false }
            return !state.hidden.contains(place) || known.others.contains { !state.hidden.contains($0) }
        }
    }

    /// Records that a socket's app has left the screen, or come back.
    func setShown(_ place: SocketPlace, isShown: Bool) {
        state.withLock { state in
            if isShown { state.hidden.remove(place) } else { state.hidden.insert(place) }
        }
    }

    // MARK: Watching

    /// Starts or stops asking the user's sockets for a sign of life every few seconds. Their loops notice within a
    /// second (`changesOfWatch`).
    package func setWatched(_ user: Name, _ isWatched: Bool) {
        state.withLock { state in
            guard (state.watched[user] != nil) != isWatched else { return }
            state.watched[user] = isWatched ? [] : nil
        }
        changesOfWatched.add(1, ordering: .releasing)
    }

    /// Counts changes of who is watched; 0 if no user ever was.
    var changesOfWatch: Int { changesOfWatched.load(ordering: .acquiring) }

    func isWatched(_ user: Name) -> Bool { state.withLock { $0.watched[user] != nil } }

    /// Adds a socket whose answers keep a watched user present. Ignored if the user is not watched.
    func addLiveness(_ socket: SocketLiveness, of user: Name) {
        state.withLock { state in
            guard let sockets = state.watched[user], !sockets.contains(where: { $0 === socket }) else { return }
            state.watched[user]?.append(socket)
        }
    }

    func removeLiveness(_ socket: SocketLiveness, of user: Name) {
        state.withLock { $0.watched[user]?.removeAll { $0 === socket } }
    }

    package var count: Int { state.withLock { $0.users.count } }

    // MARK: Transitions

    /// Removes and returns the oldest transitions, to be written.
    package func takeTransitions(upTo limit: Int = .max) -> [UserTransition] {
        state.withLock { state in
            let batch = Array(state.transitions.values.prefix(limit))
            state.transitions.removeFirst(batch.count)
            return batch
        }
    }

    /// Puts transitions back that could not be written, except for users with newer ones.
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

    /// Puts transitions back behind the others, to be written later, except for users with newer ones.
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

    private func endWindows(_ state: inout State, at now: Int64) {
        guard !state.isDraining else { return }
        for (user, grace) in state.graces where grace.until <= now && state.users[user]?.sockets == 0 {
            state.graces[user] = nil
            state.users[user] = nil
            recordTransition(UserTransition(user: user, isOnline: false, at: grace.lostAt), &state)
        }
    }

    private func recordTransition(_ transition: UserTransition, _ state: inout State) {
        guard notesTransitions else { return }
        // It goes to the end of the queue, even if an older transition of the user was waiting.
        state.transitions[transition.user] = nil
        state.transitions[transition.user] = transition
    }
}

/// The transition of a user to online or offline.
package struct UserTransition: Sendable, Equatable {
    /// The claim `sub`.
    package let user: Name
    package let isOnline: Bool
    /// The time, in milliseconds since 1970: for a user that went offline, when the last socket was lost, not when its
    /// window ended.
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
    /// If there are no sockets: until when the user may come back, in monotonic milliseconds; nil if there is a socket,
    /// or no window is open.
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

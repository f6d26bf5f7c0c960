import Synchronization
package import Wire

/// Counts each user's sockets: on this hub, and on the others of a cluster as they report them. Users are counted only
/// while they are limited.
///
/// Shared by all loops; safe from any thread, behind one lock that is held for a look-up in the table of each hub.
/// While the other hubs are unreachable, their reports are ignored: no client is refused for sockets that may be gone.
package final class UserTally: Sendable {
    private struct State {
        var own: [Name: Int32] = [:]
        /// By the process of each other hub.
        var elsewhere: [UInt64: [Name: Int32]] = [:]
        /// Users whose counts must be sent to the other hubs.
        var changed: Set<Name> = []
        var areOthersReached = false
        var whenChanged: (@Sendable () -> Void)?
    }

    private let state = Mutex(State())

    package init() {}

    // MARK: Sockets

    /// Counts another socket of a user; returns false, without counting it, if that would exceed `most` on all hubs.
    ///
    /// - Parameter most: 0 for no limit.
    package func admitSocket(_ user: Name, most: Int) -> Bool {
        changeCount { state in
            let others = state.areOthersReached ? state.elsewhere.values.reduce(0) { $0 + Int($1[user] ?? 0) } : 0
            let count = state.own[user] ?? 0
            guard most == 0 || Int(count) + others < most else { return nil }
            state.own[user] = count + 1
            return user
        }
    }

    package func releaseSocket(_ user: Name) {
        _ = changeCount { state in
            guard let count = state.own[user] else { return nil }
            state.own[user] = count > 1 ? count - 1 : nil
            return user
        }
    }

    /// - Parameter body: returns the user whose count has changed; nil if none has.
    /// - Returns: whether a count has changed.
    private func changeCount(_ body: (inout State) -> Name?) -> Bool {
        let (isChanged, tell) = state.withLock { state -> (Bool, (@Sendable () -> Void)?) in
            guard let user = body(&state) else { return (false, nil) }
            guard let whenChanged = state.whenChanged else { return (true, nil) }
            let isFirst = state.changed.isEmpty
            state.changed.insert(user)
            return (true, isFirst ? whenChanged : nil)
        }
        tell?()
        return isChanged
    }

    // MARK: Other hubs

    /// Starts recording changes for the other hubs.
    ///
    /// - Parameter whenChanged: called when there is a change, once until it is taken; on any thread, and must not
    ///   block.
    package func startReporting(_ whenChanged: @escaping @Sendable () -> Void) {
        state.withLock { $0.whenChanged = whenChanged }
    }

    /// Removes and returns the changed counts: zero for users without sockets.
    package func takeChanges(upTo limit: Int) -> [(user: Name, count: Int)] {
        state.withLock { state in
            guard !state.changed.isEmpty else { return [] }
            let users = Array(state.changed.prefix(limit))
            state.changed.subtract(users)
            return users.map { ($0, Int(state.own[$0] ?? 0)) }
        }
    }

    /// Returns the users with sockets on this hub that belong to one part of all users.
    package func counts(where isMeant: (Name) -> Bool) -> [(user: Name, count: Int)] {
        state.withLock { state in state.own.filter { isMeant($0.key) }.map { ($0.key, Int($0.value)) } }
    }

    /// Updates another hub's counts of some of its users.
    package func updateCounts(_ counts: [(user: Name, count: Int)], of hub: UInt64) {
        state.withLock { state in
            for (user, count) in counts {
                state.elsewhere[hub, default: [:]][user] = count > 0 ? Int32(clamping: count) : nil
            }
        }
    }

    /// Replaces another hub's counts of all its users that belong to one part.
    package func replaceCounts(_ counts: [(user: Name, count: Int)], of hub: UInt64, where isMeant: (Name) -> Bool) {
        state.withLock { state in
            var known = (state.elsewhere[hub] ?? [:]).filter { !isMeant($0.key) }
            for (user, count) in counts where count > 0 { known[user] = Int32(clamping: count) }
            state.elsewhere[hub] = known
        }
    }

    /// Forgets a hub that is gone, with its sockets.
    package func removePeer(hub: UInt64) { state.withLock { $0.elsewhere[hub] = nil } }

    package func reachesOthers(_ areReached: Bool) { state.withLock { $0.areOthersReached = areReached } }
}

import OrderedCollections
import Synchronization
package import Wire

/// What changed in who is present, for whoever writes it down: the newest word on each, not the way there.
///
/// Safe from any thread. The loops note; one writer takes, now and then, and may ask for everything when it has lost its
/// place (another connection, another database).
package final class PresenceLog: Sendable {
    package struct Change: Sendable, Equatable {
        package let ref: Name
        /// Nil: gone.
        package let record: PresenceRecord?

        package init(ref: Name, record: PresenceRecord?) {
            self.ref = ref
            self.record = record
        }
    }

    private struct State {
        var records: [Name: PresenceRecord] = [:]
        var changed: OrderedSet<Name> = []
        /// By channel and ref: the keys of those who are present where somebody asks.
        var watched: [ChannelKey: [Name: Name]] = [:]
    }

    private let state = Mutex(State())
    private let happenings: Happenings?
    private let clock: @Sendable () -> Int64

    /// - Parameters:
    ///   - happenings: is told who comes and who goes.
    ///   - clock: milliseconds since 1970, for these.
    package init(telling happenings: Happenings? = nil, clock: @escaping @Sendable () -> Int64 = { 0 }) {
        self.happenings = happenings
        self.clock = clock
    }

    package func put(_ record: PresenceRecord) {
        state.withLock { state in
            // Under this lock, so that they are told in their order.
            if state.records[record.ref] == nil { happenings?.present(record, at: clock()) }
            state.records[record.ref] = record
            state.changed.append(record.ref)
            if !state.watched.isEmpty { state.watched[record.channel]?[record.ref] = Name(record.key) }
        }
    }

    package func remove(_ ref: Name) {
        state.withLock { state in
            guard let record = state.records.removeValue(forKey: ref) else { return }
            happenings?.absent(record, at: clock())
            state.changed.append(ref)
            if !state.watched.isEmpty { state.watched[record.channel]?[ref] = nil }
        }
    }

    /// What is noted of one who is present.
    package func record(_ ref: Name) -> PresenceRecord? { state.withLock { $0.records[ref] } }

    /// What the writer has not heard yet, at most `limit` of it; it counts as heard from here on.
    package func take(upTo limit: Int = .max) -> [Change] {
        state.withLock { state in
            let refs = Array(state.changed.prefix(limit))
            state.changed.removeFirst(refs.count)
            return refs.map { Change(ref: $0, record: state.records[$0]) }
        }
    }

    /// The writer could not write these: they are to come again, unless something newer does.
    package func giveBack(_ changes: [Change]) {
        state.withLock { state in
            for change in changes { state.changed.append(change.ref) }
        }
    }

    /// Everybody counts as changed: the writer begins on an empty page.
    package func takeFromTheStart() {
        state.withLock { $0.changed = OrderedSet($0.records.keys) }
    }

    package var isEmpty: Bool { state.withLock { $0.changed.isEmpty } }
    package var count: Int { state.withLock { $0.records.count } }

    // MARK: Who is present

    /// From here on `present` tells of this channel. Looks at all records once.
    package func watch(_ channel: ChannelKey) {
        state.withLock { state in
            guard state.watched[channel] == nil else { return }
            var keys: [Name: Name] = [:]
            for record in state.records.values where record.channel == channel { keys[record.ref] = Name(record.key) }
            state.watched[channel] = keys
        }
    }

    package func forget(_ key: ChannelKey) {
        state.withLock { _ = $0.watched.removeValue(forKey: key) }
    }

    /// The presence keys of a channel that is watched, each once, in the order of their bytes.
    package func present(in key: ChannelKey) -> [Name] {
        state.withLock { Set($0.watched[key]?.values.map { $0 } ?? []).sorted() }
    }
}

/// One member's presence as it is written down, so that a hub that starts again knows who was there.
package struct PresenceRecord: Sendable, Equatable {
    package let channel: ChannelKey
    /// Unique among all that is tracked, and new with every track: clients know a meta by it.
    package let ref: Name
    package let key: String
    /// The client gave no key, so the hub made this one.
    package let hasMadeKey: Bool
    /// The claim `sub`.
    package let user: Name?
    /// A JSON object.
    package let payload: [UInt8]
    package let appState: ReportedAppState?

    package init(
        channel: ChannelKey, ref: Name, key: String, hasMadeKey: Bool, user: Name?, payload: [UInt8],
        appState: ReportedAppState?
    ) {
        self.channel = channel
        self.ref = ref
        self.key = key
        self.hasMadeKey = hasMadeKey
        self.user = user
        self.payload = payload
        self.appState = appState
    }
}

import OrderedCollections
import Synchronization
package import Wire

/// Changes of presence for a writer that persists them: the latest state of each, not the steps between.
///
/// Safe from any thread. The loops record; one writer takes changes now and then, and may ask for everything when it
/// has lost its position (another connection, another database).
package final class PresenceLog: Sendable {
    package struct Change: Sendable, Equatable {
        package let ref: Name
        /// Nil if the presence is gone.
        package let record: PresenceRecord?

        package init(ref: Name, record: PresenceRecord?) {
            self.ref = ref
            self.record = record
        }
    }

    private struct State {
        var records: [Name: PresenceRecord] = [:]
        var changed: OrderedSet<Name> = []
        /// Keys of the presences in watched channels, by channel and ref.
        var watched: [ChannelKey: [Name: Name]] = [:]
    }

    private let state = Mutex(State())
    private let happenings: Happenings?
    private let clock: @Sendable () -> Int64

    /// - Parameters:
    ///   - happenings: records presences that come and go.
    ///   - clock: milliseconds since 1970, for these.
    package init(telling happenings: Happenings? = nil, clock: @escaping @Sendable () -> Int64 = { 0 }) {
        self.happenings = happenings
        self.clock = clock
    }

    package func putRecord(_ record: PresenceRecord) {
        state.withLock { state in
            // Under this lock, to keep their order.
            if state.records[record.ref] == nil { happenings?.presenceAppeared(record, at: clock()) }
            state.records[record.ref] = record
            state.changed.append(record.ref)
            if !state.watched.isEmpty { state.watched[record.channel]?[record.ref] = Name(record.key) }
        }
    }

    package func remove(_ ref: Name) {
        state.withLock { state in
            guard let record = state.records.removeValue(forKey: ref) else { return }
            happenings?.presenceDisappeared(record, at: clock())
            state.changed.append(ref)
            if !state.watched.isEmpty { state.watched[record.channel]?[ref] = nil }
        }
    }

    /// Returns the record of a presence.
    package func record(_ ref: Name) -> PresenceRecord? { state.withLock { $0.records[ref] } }

    /// Removes and returns changes that the writer has not taken yet, at most `limit`.
    package func takeChanges(upTo limit: Int = .max) -> [Change] {
        state.withLock { state in
            let refs = Array(state.changed.prefix(limit))
            state.changed.removeFirst(refs.count)
            return refs.map { Change(ref: $0, record: state.records[$0]) }
        }
    }

    /// Takes back changes that the writer could not write, unless something newer replaces them.
    package func giveBack(_ changes: [Change]) {
        state.withLock { state in
            for change in changes { state.changed.append(change.ref) }
        }
    }

    /// Marks every record as changed, for a writer that starts on an empty page.
    package func takeFromTheStart() {
        state.withLock { $0.changed = OrderedSet($0.records.keys) }
    }

    package var isEmpty: Bool { state.withLock { $0.changed.isEmpty } }
    package var count: Int { state.withLock { $0.records.count } }

    // MARK: Presence keys

    /// Starts to answer `presentKeys` for this channel. Scans all records once.
    package func watchChannel(_ channel: ChannelKey) {
        state.withLock { state in
            guard state.watched[channel] == nil else { return }
            var keys: [Name: Name] = [:]
            for record in state.records.values where record.channel == channel { keys[record.ref] = Name(record.key) }
            state.watched[channel] = keys
        }
    }

    package func unwatchChannel(_ key: ChannelKey) {
        state.withLock { _ = $0.watched.removeValue(forKey: key) }
    }

    /// Returns the presence keys of a watched channel, each once, in the order of their bytes.
    package func presentKeys(in key: ChannelKey) -> [Name] {
        state.withLock { Set($0.watched[key]?.values.map { $0 } ?? []).sorted() }
    }
}

/// One member's presence in its persisted form, so that a restarted hub knows it.
package struct PresenceRecord: Sendable, Equatable {
    package let channel: ChannelKey
    /// Unique among everything tracked, and new with every track: clients identify a meta by it.
    package let ref: Name
    package let key: String
    /// The hub made this key because the client gave none.
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

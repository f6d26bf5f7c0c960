import Cluster
import Hub

@testable import Clustering

/// The log that hubs share, as somebody who writes into Redis makes it: what comes is read, its turn is found, and what it says is done.
struct FuzzedLog {
    private static let key = ChannelKey(topic: "realtime:a", isPrivate: false)
    static let hub = HubIdentity(name: "other", boot: 9)
    static let epoch: UInt64 = 1000

    func read(_ bytes: [UInt8]) {
        guard let own = HubIdentity(name: "own", boot: 7) else { return }
        var (reader, writer, peers) = (LogReader(own: own), LogWriter(own: own), PeerTable(own: own))
        var (state, actions, rate) = (ClusterState(boot: 7), [LogReaderAction](), BeatRate())
        let history = HistoryStore()
        reader.sentThrough = 0
        reader.opened(LogHead(place: LogPlace(epoch: Self.epoch, offset: -1), tag: 0), now: 0, &actions)
        var rest = bytes[...]
        var now: Int64 = 1 << 41
        // A byte says what comes, two how long it is.
        while rest.count >= 3 {
            let (kind, length) = (
                rest[rest.startIndex], Int(rest[rest.startIndex + 1]) << 8 | Int(rest[rest.startIndex + 2])
            )
            let part = rest.dropFirst(3).prefix(length)
            rest = rest.dropFirst(3 + length)
            now += 500
            switch kind % 5 {
            case 0:
                switch PublishedMessage.decode(part) {
                case .value(.entry(let entry)): reader.published(entry, now: now, &actions)
                case .value(.beat(let beat)):
                    reader.heard(beat, now: now, &actions)
                    var found: [PeerTableAction] = []
                    peers.heard(beat, at: now, &found)
                    let figures = BeatFigures(beat.figures)
                    _ = (figures.list, rate.count(beat.number, at: now))
                case .value(.direct(let message)): reader.received(message, &actions)
                case .malformed, .unknownVersion: break
                }
            case 1:
                if let head = LogHead(part) { reader.opened(head, now: now, &actions) }
            case 2: reader.headConfirmed(LogHead(part), now: now, &actions)
            case 3: say(part, from: kind & 0x80 == 0 ? 9 : 7, at: now, &state, history)
            default:
                do {
                    _ = try DirectPayload(part)
                    _ = try PresenceQuestion(Array(part))
                    if case .pieces(let hub, let pieces, let covered, let snapshot)? = try PresenceAnswer(
                        Array(part), at: now)
                    {
                        var out: [ClusterState.Output] = []
                        state.replace(hub, in: pieces, covered, by: snapshot, &out)
                    }
                } catch {}
            }
            perform(&actions, at: now, &reader, &writer, &state, history)
        }
    }

    private func say(
        _ bytes: ArraySlice<UInt8>, from hub: UInt64, at now: Int64, _ state: inout ClusterState,
        _ history: HistoryStore
    ) {
        do {
            guard let message = try PeerMessage(bytes) else { return }
            var out: [ClusterState.Output] = []
            state.heard(message, from: hub, at: now, &out)
            for output in out {
                switch output {
                case .keep(let key, let wish, let hub):
                    history.keep(key, wish, for: hub, chance: 1, at: HubTime(monotonic: now, unix: now))
                case .hear(.presence(_, let diff)):
                    for meta in diff.joins + diff.leaves { _ = state.names.name(of: meta.member) }
                case .extend(let member, _, _), .withdraw(let member, _): _ = state.names.name(of: member)
                default: break
                }
            }
            _ = (state.digest(of: hub), state.digests(of: hub, in: state.pieces(of: hub)))
            state.endOverdue(of: { _ in true }, at: now, rank: 1, &out)
        } catch {}
    }

    private func perform(
        _ actions: inout [LogReaderAction], at now: Int64, _ reader: inout LogReader, _ writer: inout LogWriter,
        _ state: inout ClusterState, _ history: HistoryStore
    ) {
        for action in actions {
            switch action {
            case .apply(let applied):
                for (index, bytes) in applied.messages.enumerated() {
                    _ = history.reaches(
                        history: applied.place.epoch, entry: Int(applied.place.offset) + 1,
                        index: applied.index + index + 1)
                    say(bytes, from: applied.hub.boot, at: now, &state, history)
                }
            case .caughtUp(let caughtUp):
                _ = history.reaches(history: caughtUp.place.epoch, entry: Int(caughtUp.place.offset) + 1, index: 1)
                var out: [LogWriterAction] = []
                writer.linkAway()
                writer.reopened(caughtUp.place, ownSequence: caughtUp.ownSequence, at: now, &out)
                _ = (writer.waiting, writer.settled)
            default: break
            }
        }
        actions = []
    }
}

package import Hub
import Synchronization

/// Asks a hub where clients are that look like ones that have joined here, and answers such questions of others.
///
/// A question has 16 bytes per key; the answer has the cursors that occur in it, and for each key the one that applies.
/// It reveals no more about clients than `roost.session` does, and only to hubs. Thread-safe.
package final class PeerSessions: PeerAnswering {
    /// Converts recovery points of this process to cursors that every hub understands; nil for a point without one.
    /// Calls back once, from any thread, possibly after the callers have stopped waiting.
    package typealias Locate = @Sendable ([RecoveryPoint], @escaping @Sendable ([String?]) -> Void) -> Void

    /// How long a join waits for the hub where its client may have been; after that, the database decides.
    package static let patience = Duration.milliseconds(200)
    /// Questions to hubs that may be open at once. Beyond that, the database decides.
    private static let mostOpen = 64
    /// Keys in one question.
    static let mostKeys = 4_096

    private let registry: SessionRegistry
    private let locate: Locate
    private let open = Atomic<Int>(0)

    package init(registry: SessionRegistry, locate: @escaping Locate) {
        self.registry = registry
        self.locate = locate
    }

    // MARK: Answering

    package func answerQuestion(_ question: [UInt8], of hub: String, reply: @escaping @Sendable ([UInt8]?) -> Void) {
        guard let keys = Self.decodeQuestion(question) else { return reply(nil) }
        let found = registry.whereabouts(of: keys, at: ClusterWorker.now)
        var points: [RecoveryPoint] = []
        // Many clients share the same point.
        let places = found.map { whereabouts -> Int? in
            guard case .from(let point) = whereabouts else { return nil }
            if let known = points.lastIndex(of: point) { return known }
            points.append(point)
            return points.count - 1
        }
        guard !points.isEmpty else { return reply(Self.encodeAnswer(found.map { Self.sessionWord($0, cursor: nil) })) }
        locate(points) { cursors in
            let words = zip(found, places).map { whereabouts, place in
                Self.sessionWord(
                    whereabouts, cursor: place.flatMap { cursors.indices.contains($0) ? cursors[$0] : nil })
            }
            reply(Self.encodeAnswer(words))
        }
    }

    /// The answer for one key.
    enum Word: Equatable, Sendable {
        case nobody
        case unknown
        case from(cursor: String)
    }

    private static func sessionWord(_ whereabouts: SessionRegistry.Whereabouts, cursor: String?) -> Word {
        switch whereabouts {
        case .nobody: .nobody
        case .unknown: .unknown
        case .from: cursor.map { .from(cursor: $0) } ?? .unknown
        }
    }

    // MARK: Asking

    /// Asks the hubs that had clients with these keys.
    ///
    /// - Parameters:
    ///   - elsewhere: the sessions according to the database.
    ///   - done: called once, from any thread, with what is now known; for a hub that does not answer, that is unchanged.
    package func askHubs(
        _ elsewhere: [RecoveryKey: [SessionRegistry.Elsewhere]], by peers: any PeerAsking,
        then done: @escaping @Sendable ([RecoveryKey: [SessionRegistry.Elsewhere]]) -> Void
    ) {
        var keys: [String: [RecoveryKey]] = [:]
        for (key, others) in elsewhere { for other in others { keys[other.node, default: []].append(key) } }
        let round = SessionRound(elsewhere, hubs: keys.count, done)
        for (hub, keys) in keys {
            guard keys.count <= Self.mostKeys, open.load(ordering: .relaxed) < Self.mostOpen else {
                round.receiveWords(nil, from: hub, of: keys)
                continue
            }
            open.add(1, ordering: .relaxed)
            peers.askHubs(.sessions, Self.encodeQuestion(keys), of: [hub], within: Self.patience) { [self] answers in
                open.subtract(1, ordering: .relaxed)
                round.receiveWords(
                    answers.first?.body.flatMap { Self.decodeAnswer($0, count: keys.count) }, from: hub, of: keys)
            }
        }
    }

    // MARK: Bytes

    static func encodeQuestion(_ keys: [RecoveryKey]) -> [UInt8] {
        var out = RelayWriter(reserving: keys.count * 20 + 4)
        out.appendNumber(keys.count)
        for key in keys {
            out.appendNumber(key.high)
            out.appendNumber(key.low)
        }
        return out.bytes
    }

    static func decodeQuestion(_ bytes: [UInt8]) -> [RecoveryKey]? {
        do {
            var fields = RelayReader(bytes[...])
            let count = try fields.readCount()
            guard count <= mostKeys else { return nil }
            return try (0..<count).map { _ throws(RelayReader.Malformed) in
                RecoveryKey(high: try fields.readNumber(), low: try fields.readNumber())
            }
        } catch { return nil }
    }

    /// 0: nobody, 1: unknown, from 2 on: the cursor with that number.
    static func encodeAnswer(_ words: [Word]) -> [UInt8] {
        var (cursors, numbers): ([String], [String: Int]) = ([], [:])
        let said = words.map { word in
            switch word {
            case .nobody: return 0
            case .unknown: return 1
            case .from(let cursor):
                if let known = numbers[cursor] { return known }
                cursors.append(cursor)
                numbers[cursor] = cursors.count + 1
                return cursors.count + 1
            }
        }
        var out = RelayWriter(reserving: cursors.reduce(words.count * 2 + 8) { $0 + $1.utf8.count + 3 })
        out.appendNumber(cursors.count)
        for cursor in cursors { out.appendText(cursor) }
        out.appendNumber(said.count)
        for word in said { out.appendNumber(word) }
        return out.bytes
    }

    /// - Returns: nil if this does not answer a question of `count` keys. An unknown word counts as `unknown`.
    static func decodeAnswer(_ bytes: [UInt8], count: Int) -> [Word]? {
        do {
            var fields = RelayReader(bytes[...])
            var cursors: [String] = []
            let known = try fields.readCount()
            guard known <= count else { return nil }
            for _ in 0..<known { cursors.append(try fields.readText()) }
            guard try fields.readCount() == count else { return nil }
            return try (0..<count).map { _ throws(RelayReader.Malformed) in
                switch try fields.readCount() {
                case 0: .nobody
                case let number where cursors.indices.contains(number - 2): .from(cursor: cursors[number - 2])
                default: .unknown
                }
            }
        } catch { return nil }
    }
}

/// Questions to several hubs about the same keys. Thread-safe.
private final class SessionRound: Sendable {
    private struct State {
        var found: [RecoveryKey: [SessionRegistry.Elsewhere]]
        var open: Int
    }

    private let state: Mutex<State>
    private let done: @Sendable ([RecoveryKey: [SessionRegistry.Elsewhere]]) -> Void

    init(
        _ elsewhere: [RecoveryKey: [SessionRegistry.Elsewhere]], hubs: Int,
        _ done: @escaping @Sendable ([RecoveryKey: [SessionRegistry.Elsewhere]]) -> Void
    ) {
        state = Mutex(State(found: elsewhere, open: hubs))
        self.done = done
    }

    /// - Parameter words: one for each key; nil if the hub's answer is missing or unreadable.
    func receiveWords(_ words: [PeerSessions.Word]?, from hub: String, of keys: [RecoveryKey]) {
        let whole = state.withLock { state in
            state.open -= 1
            for (key, word) in zip(keys, words ?? []) {
                switch word {
                case .unknown: break
                case .nobody: state.found[key]?.removeAll { $0.node == hub }
                case .from(let cursor):
                    state.found[key] = state.found[key]?.map { $0.node == hub ? $0.withCursor(cursor) : $0 }
                }
            }
            return state.open == 0 ? state.found : nil
        }
        if let whole { done(whole) }
    }
}

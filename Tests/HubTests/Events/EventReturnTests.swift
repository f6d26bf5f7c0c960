import Hub
import Matching
import TestSupport
import Testing
import Wire

/// A reader that is cut off at any byte and comes back with the last `id` that it has, against a plain list of what was sent: in
/// every channel it gets everything once and in order.
@Suite struct EventReturnTests {
    @Test(arguments: 0..<24) func nothingIsMissedAndNothingComesTwice(_ seed: Int) throws {
        var world = try ReaderWorld(seed: UInt64(seed), lines: seed % 2 == 1)
        for _ in 0..<600 { try world.step() }
        try world.end()
        #expect(world.cuts > 10)
        #expect(world.sent.allSatisfy { $0.count > 40 })
        #expect(world.got == world.sent)
    }

    /// The feed hands a loop only what its subscribers hear; how far it is, it says to all.
    @Test func aQuietReaderGoesOnWithWhatOtherLoopsAreSent() throws {
        var world = try ReaderWorld(seed: 1, lines: false)
        #expect(try world.position(whenAllIsPassedOnUpTo: "c41").contains("!rc41"))
    }
}

private struct ReaderWorld {
    private let stage: Stage
    private let format: EventFormat
    private var random: SeededGenerator
    private var group: ChangeGroupID?
    /// Of the rows, of the channel `talk` and of the channel `news`.
    private(set) var sent: [[Int]] = [[], [], []]
    private(set) var got: [[Int]] = [[], [], []]
    private(set) var cuts = 0
    private var boundaries = 0
    private var lastID: String?
    private var slot = Slot(0)
    private var isConnected = false
    /// What its socket has not brought yet, and what of it is no whole event.
    private var wire: [UInt8] = []
    private var unread: [UInt8] = []
    private static let table =
        #"{"topic":"rows","config":{"postgres_changes":[{"event":"*","schema":"public","table":"t"}]}}"#

    init(seed: UInt64, lines: Bool) throws {
        random = SeededGenerator(seed: seed)
        format = EventFormat(isLines: lines, isChunked: false)
        var limits = HubLimits()
        limits.historyMessages = 1000
        limits.historySeconds = 100_000
        stage = Stage(limits: limits)
        // From here on it is owed everything.
        try connect()
        while !isConnected || lastID.map({ $0.contains("!r") && $0.occurrences(of: "!h") == 2 }) != true {
            try read(wire.count)
        }
    }

    private mutating func below(_ bound: Int) -> Int { Int(random.next() % UInt64(bound)) }

    mutating func step() throws {
        switch below(13) {
        case 12: try reached("c\(sent[0].count - 1)")
        case 0...1: try row()
        case 2...4: try message(1 + below(2))
        case 5...8: try read(below(400))
        case 9:
            try stage.tick(after: Int64(below(3000)))
            try take()
        default: isConnected ? (below(3) == 0 ? try cut() : ()) : try connect()
        }
    }

    mutating func end() throws {
        if !isConnected { try connect() }
        try read(.max)
    }

    private mutating func connect() throws {
        slot += 1
        isConnected = true
        (wire, unread) = ([], [])
        let request = try EventRequest(channels: [Self.table, "talk", "news"], lastID: lastID)
        _ = try stage.watch {
            $0.advanceTime(to: stage.now)
            $0.connectReader(request, as: format, on: slot, claims: Stage.claims(), isPage: false)
        }
        try take()
    }

    private mutating func cut() throws {
        cuts += 1
        isConnected = false
        try stage.disconnect(slot)
        group = stage.actions.contains { if case .unsubscribe = $0 { true } else { false } } ? nil : group
    }

    // MARK: What is sent

    private mutating func row() throws {
        sent[0].append(sent[0].count)
        guard let group else { return }
        _ = try stage.watch { $0.deliverEvent(.change(change(sent[0].count - 1, group))) }
        try take()
    }

    private mutating func reached(_ cursor: String) throws {
        boundaries += 1
        _ = try stage.watch {
            $0.deliverEvent(.boundary(boundaries))
            $0.deliverEvent(.reached(cursor: cursor))
        }
        try take()
    }

    mutating func position(whenAllIsPassedOnUpTo cursor: String) throws -> String {
        try reached(cursor)
        for _ in 0..<2 {
            try stage.tick(after: 15_000)
            try take()
        }
        try read(.max)
        return lastID ?? ""
    }

    private func change(_ row: Int, _ group: ChangeGroupID) -> ChangeDelivery {
        ChangeDelivery(
            group: group, operation: .insert, ids: [1], data: Array(#"{"row":\#(row)}"#.utf8), cursor: "c\(row)")
    }

    private mutating func message(_ channel: Int) throws {
        let text = #"{"event":"n","payload":{"n":\#(sent[channel].count)},"type":"broadcast"}"#
        sent[channel].append(sent[channel].count)
        let key = ChannelKey(topic: channel == 1 ? "realtime:talk" : "realtime:news", isPrivate: false)
        _ = try stage.watch { $0.publishMessage(.text(Array(text.utf8)), to: key) }
        try take()
    }

    /// Does what the hub asks for, and puts on the wire what it sends.
    private mutating func take() throws {
        var actions = stage.actions
        while !actions.isEmpty {
            var asked: [Action] = []
            for action in actions {
                switch action {
                // The gateway lets go what it held back behind this.
                case .begin(slot, let frame): wire = frame.bytes + wire
                case .send(let frame, to: slot, _): wire += frame.bytes
                case .fanOut(let frame, let audience, _, _) where audience.contains(slot): wire += frame.bytes
                case .subscribe(let id, _):
                    group = id
                    _ = try stage.watch { $0.changeSubscription(id, is: .live) }
                    asked += stage.actions
                case .recover(let id, let question):
                    _ = try stage.watch { answer($0, id, question) }
                    asked += stage.actions
                default: break
                }
            }
            actions = asked
        }
    }

    private func answer(_ hub: Hub, _ id: RecoveryID, _ question: RecoveryQuestion) {
        hub.deliverEvent(.recovery(id, .began(.resumed)))
        var first = sent[0].count
        if case .cursor(let cursor) = question.from, let row = Int(cursor.dropFirst()) { first = row + 1 }
        for row in first..<max(first, sent[0].count) {
            hub.deliverEvent(.recovery(id, .changes([change(row, question.group)])))
        }
        hub.deliverEvent(.recovery(id, .caughtUp(cursor: "c\(sent[0].count - 1)")))
    }

    // MARK: What arrives

    private mutating func read(_ most: Int) throws {
        let count = min(most, wire.count)
        unread += wire.prefix(count)
        wire.removeFirst(count)
        let end = Array(format.isLines ? "\n".utf8 : "\n\n".utf8)
        while let block = unread.firstRange(of: end) {
            let text = String(decoding: unread[..<block.lowerBound], as: UTF8.self)
            unread.removeSubrange(..<block.upperBound)
            try format.isLines ? line(text) : event(text)
        }
    }

    private mutating func event(_ block: String) throws {
        for line in block.split(separator: "\n") {
            if line.hasPrefix("id: ") { lastID = String(line.dropFirst(4)) }
            if line.hasPrefix("data: ") { try take(JSON(parsing: Array(line.dropFirst(6).utf8))) }
        }
    }

    private mutating func line(_ text: String) throws {
        let json = try JSON(parsing: Array(text.utf8))
        if let id = json["id"]?.string { lastID = id }
        if json["event"] != nil { try take(json) }
    }

    private mutating func take(_ data: JSON) throws {
        let payload = try #require(data["payload"])
        switch data["event"]?.string {
        case "connected": if cuts > 0 { #expect(payload["resumed"]?.bool == true, "\(payload)") }
        case "postgres_changes": got[0].append(try #require(payload["data"]?["row"]?.int))
        case "n": got[data["topic"]?.string == "talk" ? 1 : 2].append(try #require(payload["n"]?.int))
        default: break
        }
    }
}

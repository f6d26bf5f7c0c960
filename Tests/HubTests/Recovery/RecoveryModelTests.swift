import Foundation
import Hub
import TestSupport
import Testing
import Wire

/// Clients that know nothing of cursors, cut off at random in every way there is, on two loops: at the end each has every
/// change since it first heard that it is subscribed. With every other seed the hub is killed on the way.
@Suite struct RecoveryModelTests {
    /// Behind the first come seeds of which each once lost something.
    @Test(arguments: Array(1...40) + [57, 82, 91, 121, 125]) func nothingIsLost(seed: Int) throws {
        var world = RecoveryWorld(seed: UInt64(seed))
        for step in 0..<800 {
            if seed % 2 == 0, step == 150 + seed * 10 { try world.killHub() }
            try world.step()
        }
        try world.settle()
        for client in world.clients {
            let since = try #require(client.since)
            let missing = (since..<world.rows).filter { !client.got.contains($0) }
            #expect(missing.isEmpty, "client \(client.number) of seed \(seed), \(client.habit)")
        }
        #expect(world.losses > 10)
        #expect(world.recovered > 10)
        #expect(world.late == 0)
        if ProcessInfo.processInfo.environment["ROOST_MODEL_FIGURES"] != nil { print("seed \(seed): \(world.figures)") }
    }

    /// The window is short, and some come back when it is over: they load their data, and take nothing from those who are in time.
    @Test(arguments: 1...40) func whoComesTooLateCostsNobodyAnything(seed: Int) throws {
        var world = RecoveryWorld(seed: UInt64(seed), window: 4_000)
        for _ in 0..<1_600 { try world.step() }
        try world.settle()
        for client in world.clients {
            let since = try #require(client.since)
            let missing = (since..<world.rows).filter { !client.got.contains($0) }
            #expect(missing.isEmpty, "client \(client.number) of seed \(seed), \(client.habit)")
        }
        #expect(world.late > 5)
    }
}

/// A feed, two hubs and clients with wires between them that can break.
private struct RecoveryWorld {
    enum Habit {
        /// Its refs count on over reconnects.
        case counts
        /// They begin with 1 on each socket.
        case beginsAnew
        /// In a browser: counts on, and is reloaded now and then, which makes another client of it.
        case isPage
    }

    struct Client {
        let number: Int
        let subject: String?
        /// Of some the tokens tell devices apart.
        let session: String?
        let habit: Habit
        var socket: Int?
        var ref = 0
        /// The first change that it has to get: it was committed after the client heard that it is subscribed.
        var since: Int?
        var got: Set<Int> = []
        /// Some come back long after others that look like them.
        var waits = 0
        /// When it lost its socket.
        var leftAt: Int64?
    }

    struct Socket {
        let loop: Int
        let slot: Slot
        let client: Int
        /// The client it belonged to was reloaded meanwhile.
        var isOfPast = false
        var isOpenAtHub = true
        /// Sent by the hub and not read yet.
        var wire: [String] = []
        var hasUnacknowledged = false
    }

    struct Recovery {
        let id: RecoveryID
        let group: ChangeGroupID
        var position: Int
        var hasBegun = false
    }

    struct Figures {
        /// Changes that clients were sent, how many of them they had, and how many were older than the client.
        var sent = 0
        var repeats = 0
        var old = 0
        var reloads = 0
    }

    /// A row of the list: where those of a key stand, as a number of changes.
    private struct Written {
        let count: Int
        let place: Int
        let follows: Bool
    }

    private static let config = #"{"postgres_changes":[{"event":"*","schema":"public","table":"todos"}]}"#
    private var random: SeededGenerator
    private var stages: [Stage]
    private let window: Int64
    private var registry: SessionRegistry
    /// Where the process before left its clients, as it stored it; nil in the first.
    private var restart: Int?
    /// What is written down of the registry.
    private var records: [RecoveryKey: Written] = [:]
    /// And what all have who follow.
    private var proven = 0
    private var sockets: [Socket] = []
    private var nextSlot: Slot = 1
    private var groups: [[ChangeGroupID]] = [[], []]
    private var recoveries: [Recovery] = []
    private var marks = [0]
    private(set) var clients: [Client] = []
    private(set) var rows = 0
    private(set) var losses = 0
    private(set) var recovered = 0
    /// How many came when the window was over, or almost.
    private(set) var late = 0
    private(set) var figures = Figures()

    init(seed: UInt64, window: Int64 = 120_000) {
        random = SeededGenerator(seed: seed)
        self.window = window
        registry = Self.registry(window)
        registry.nobodyIsFromBefore()
        stages = Self.stages(registry)
        keepRecords()
        let kinds: [(String?, String?, Habit)] = [
            (nil, nil, .counts), (nil, nil, .beginsAnew), ("ann", nil, .counts), ("ann", nil, .beginsAnew),
            ("ann", nil, .isPage), ("bob", nil, .counts), ("bob", nil, .counts), ("eve", "phone", .beginsAnew),
            ("eve", "desk", .isPage), ("eve", "desk", .isPage), ("joe", nil, .isPage), ("sue", nil, .beginsAnew),
        ]
        for (number, (subject, session, habit)) in kinds.enumerated() {
            clients.append(Client(number: number, subject: subject, session: session, habit: habit))
        }
    }

    /// Its time is short: whoever lags behind the others is to be told from them.
    private static func registry(_ window: Int64) -> SessionRegistry {
        SessionRegistry(window: window, longestProof: 200)
    }

    private static func stages(_ registry: SessionRegistry) -> [Stage] {
        (0...1).map { Stage(loop: $0, sessions: registry) }
    }

    /// Some come too late.
    private var isShort: Bool { window < 10_000 }

    private mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &random) < percent }

    mutating func step() throws {
        switch Int.random(in: 0..<11, using: &random) {
        case 0, 1: try commit()
        case 2, 3: for socket in sockets.indices { try read(socket, most: Int.random(in: 0...40, using: &random)) }
        case 4, 5: try serve(mayStop: true)
        case 6: try tick(isShort ? 100 : 50)
        case 7, 8: if let client = clients.indices.randomElement(using: &random) { try comeOrGo(client) }
        case 9: write()
        default: try endHalfOpen()
        }
    }

    // MARK: What outlives a process

    private func keepRecords() { registry.startRecording(whenAwaited: {}) }

    private mutating func write() {
        let found = chance(50) ? registry.surveyProgress(at: stages[0].now) : nil
        // At any time the hub may be killed.
        let most = chance(80) ? Int.max : Int.random(in: 0...3, using: &random)
        var written = 0
        while written < most, case let changed = registry.takeChanged(upTo: 2), !changed.isEmpty {
            written += 1
            for record in changed {
                let (point, follows): (RecoveryPoint, Bool) =
                    switch record.place {
                    case .at(let point): (point, false)
                    case .following(let mark): (.mark(mark), true)
                    }
                records[record.key] =
                    record.count == 0 ? nil : Written(count: record.count, place: position(point), follows: follows)
            }
            registry.isWritten(changed, successfully: true)
        }
        if let found, written < most { proven = max(proven, marks[found]) }
    }

    /// The next process knows what was stored, and all that the clients had on their way is cut short.
    mutating func killHub() throws {
        for client in clients.indices {
            guard let socket = clients[client].socket else { continue }
            let arriving = Int.random(in: 0...sockets[socket].wire.count, using: &random)
            for text in sockets[socket].wire.prefix(arriving) { hear(text, client) }
            clients[client].socket = nil
            clients[client].waits = Int.random(in: 0...40, using: &random)
            losses += 1
        }
        for socket in sockets.indices { sockets[socket].isOpenAtHub = false }
        let stored = marks[registry.oldestMark() ?? marks.count - 1]
        restart = stored
        registry = Self.registry(window)
        // Postgres may have crashed, too.
        if chance(70) {
            registry.restoreSessions(
                records.map { key, left in
                    let place = left.follows ? max(left.place, proven) : left.place
                    return .init(key: key, count: left.count, place: .at(.restored(String(place))))
                })
        } else {
            records = [:]
        }
        marks = [stored]
        proven = 0
        recoveries = []
        groups = [[], []]
        stages = Self.stages(registry)
        keepRecords()
    }

    /// Everybody is back, and has read all.
    mutating func settle() throws {
        for client in clients.indices where clients[client].socket == nil { try connect(client) }
        for round in 0..<40 {
            if round < 5 { try commit() }
            try serve(mayStop: false)
            for socket in sockets.indices { try read(socket, most: .max) }
            write()
            try tick()
        }
    }

    // MARK: The feed

    private mutating func commit() throws {
        let first = rows
        rows += Int.random(in: 1...3, using: &random)
        marks.append(rows)
        registry.hasHandedOn(upTo: marks.count - 1)
        for loop in stages.indices {
            for group in groups[loop] {
                for row in first..<rows {
                    try perform(loop) { $0.deliverEvent(.change(Self.change(row, group))) }
                }
            }
            // A loop that nobody listens on hears of marks later.
            let mark = marks.count - 1
            if !groups[loop].isEmpty || chance(30) { try perform(loop) { $0.deliverEvent(.boundary(mark)) } }
        }
    }

    /// The cursor is the number of what comes next.
    private static func change(_ row: Int, _ group: ChangeGroupID) -> ChangeDelivery {
        ChangeDelivery(
            group: group, operation: .insert, ids: [1], data: Array(String(row).utf8), cursor: String(row + 1))
    }

    private mutating func serve(mayStop: Bool) throws {
        for var recovery in recoveries {
            guard recoveries.contains(where: { $0.id == recovery.id }) else { continue }
            let end = mayStop && chance(40) ? Int.random(in: recovery.position...rows, using: &random) : rows
            let changes = (recovery.position..<end).map { Self.change($0, recovery.group) }
            let steps: [RecoveryStep] =
                (recovery.hasBegun ? [] : [.began(.resumed)]) + (changes.isEmpty ? [] : [.changes(changes)])
                + (end == rows ? [.caughtUp(cursor: String(rows))] : [])
            recovery.hasBegun = true
            recovery.position = end
            recoveries.removeAll { $0.id == recovery.id }
            if end < rows { recoveries.append(recovery) } else { recovered += 1 }
            for step in steps { try perform(recovery.id.loop) { $0.deliverEvent(.recovery(recovery.id, step)) } }
            // On the way, too, as the gateway does it.
            if end < rows, chance(50),
                let socket = sockets.lastIndex(where: {
                    $0.isOpenAtHub && $0.loop == recovery.id.loop
                        && $0.slot == stages[recovery.id.loop].hub.slot(of: recovery.id)
                })
            {
                try ask(socket)
            }
        }
    }

    // MARK: Clients

    private mutating func comeOrGo(_ client: Int) throws {
        guard let socket = clients[client].socket else {
            clients[client].waits -= 1
            return clients[client].waits < 0 ? try connect(client) : ()
        }
        guard chance(60) else { return }
        losses += 1
        // Some of what is on its way arrives yet, and whatever is answered to it is lost.
        let arriving = Int.random(in: 0...sockets[socket].wire.count, using: &random)
        for text in sockets[socket].wire.prefix(arriving) { hear(text, client) }
        sockets[socket].wire = []
        clients[client].socket = nil
        clients[client].leftAt = stages[0].now.monotonic
        if clients[client].habit == .isPage, chance(40) {
            // Its good-bye may be lost.
            if chance(80) { try close(socket, isUnloaded: true) }
            try reload(client)
            return
        }
        // Half-open: the hub does not hear of it for a while. Without a user and with refs that begin anew nothing tells whose it was.
        let isNameless = clients[client].subject == nil && clients[client].habit == .beginsAnew
        if isNameless || chance(50) { try close(socket) }
        if chance(70) {
            try connect(client)
        } else {
            clients[client].waits = Int.random(in: 0...(isShort && chance(30) ? 60 : 6), using: &random)
        }
    }

    private mutating func reload(_ client: Int) throws {
        figures.reloads += 1
        let old = clients[client]
        for socket in sockets.indices where sockets[socket].client == client { sockets[socket].isOfPast = true }
        clients[client] = Client(number: old.number, subject: old.subject, session: old.session, habit: old.habit)
        try connect(client)
    }

    private mutating func endHalfOpen() throws {
        for socket in sockets.indices
        where sockets[socket].isOpenAtHub
            && (sockets[socket].isOfPast || clients[sockets[socket].client].socket != socket) && chance(30)
        {
            try close(socket)
        }
    }

    private mutating func close(_ socket: Int, isUnloaded: Bool = false) throws {
        sockets[socket].isOpenAtHub = false
        let slot = sockets[socket].slot
        try perform(sockets[socket].loop) { $0.disconnect(slot, isUnloaded: isUnloaded) }
    }

    private mutating func connect(_ client: Int) throws {
        let loop = Int.random(in: 0...1, using: &random)
        let slot = nextSlot
        nextSlot += 1
        sockets.append(Socket(loop: loop, slot: slot, client: client))
        clients[client].socket = sockets.count - 1
        // Both loops' clocks are one.
        let now = stages[loop].now
        stages[loop].hub.advanceTime(to: now)
        // Whether those live whom it may have been is asked for a second.
        if let left = clients[client].leftAt, now.monotonic - left > window - 1_500 {
            late += 1
            clients[client].since = nil
            clients[client].got = []
        }
        stages[loop].connect(
            slot, subject: clients[client].subject, session: clients[client].session,
            isPage: clients[client].habit == .isPage)
        clients[client].ref = clients[client].habit == .beginsAnew ? 1 : clients[client].ref + 1
        let ref = clients[client].ref
        let text = #"["\#(ref)","\#(ref)","realtime:a","phx_join",{"config":\#(Self.config)}]"#
        try perform(loop) { try $0.receiveMessage(Array(text.utf8)[...], isBinary: false, from: slot, at: now) }
    }

    private mutating func read(_ socket: Int, most: Int) throws {
        let client = sockets[socket].client
        guard !sockets[socket].isOfPast, clients[client].socket == socket else { return }
        let texts = Array(sockets[socket].wire.prefix(most))
        sockets[socket].wire.removeFirst(texts.count)
        for text in texts {
            hear(text, client)
            if text.hasPrefix("ping ") {
                let slot = sockets[socket].slot
                try perform(sockets[socket].loop) { _ = $0.receivePong(text.dropFirst(5).utf8, from: slot) }
            }
        }
    }

    private mutating func hear(_ text: String, _ client: Int) {
        if text.contains("phx_reply"), clients[client].since == nil { clients[client].since = rows }
        if text.contains("postgres_changes"), let range = text.firstRange(of: #""data":"#),
            let row = Int(text[range.upperBound...].prefix { $0.isNumber })
        {
            figures.sent += 1
            if let since = clients[client].since, row < since - 3 { figures.old += 1 }
            if !clients[client].got.insert(row).inserted { figures.repeats += 1 }
        }
    }

    private mutating func tick(_ milliseconds: Int64 = 50) throws {
        for loop in stages.indices { try perform(loop, tickAfter: milliseconds) }
        for socket in sockets.indices where sockets[socket].isOpenAtHub {
            let hub = stages[sockets[socket].loop].hub
            if !sockets[socket].hasUnacknowledged {
                hub.nothingUnacknowledged(of: sockets[socket].slot)
            } else if chance(50) {
                try ask(socket)
            }
        }
    }

    private mutating func ask(_ socket: Int) throws {
        guard let ping = stages[sockets[socket].loop].hub.acknowledgementPing(for: sockets[socket].slot) else { return }
        sockets[socket].wire.append(try ping.shown())
        sockets[socket].hasUnacknowledged = false
    }

    // MARK: The gateway

    private mutating func perform(_ loop: Int, tickAfter milliseconds: Int64) throws {
        _ = try stages[loop].tick(after: milliseconds)
        try act(loop)
    }

    private mutating func perform(_ loop: Int, _ body: (Hub) throws -> Void) throws {
        _ = try stages[loop].watch(body)
        try act(loop)
    }

    private func position(_ point: RecoveryPoint) -> Int {
        switch point {
        case .mark(let mark): marks[mark]
        case .restart: restart ?? marks[0]
        case .cursor(let text), .restored(let text), .snapshot(let text), .peer(cursor: let text, otherwise: _):
            Int(text) ?? 0
        case .earliest(let points): points.map(position).min() ?? 0
        }
    }

    private mutating func act(_ loop: Int) throws {
        for action in stages[loop].actions {
            switch action {
            case .send(let frame, let slot, let kind): try send(frame, [slot], loop, kind)
            case .fanOut(let frame, let audience, _, let kind): try send(frame, audience, loop, kind)
            case .subscribe(let id, _):
                groups[loop].append(id)
                try perform(loop) { $0.changeSubscription(id, is: .live) }
            case .unsubscribe(let id): groups[loop].removeAll { $0 == id }
            case .recover(let id, let question):
                let start = position(question.from)
                recoveries.append(Recovery(id: id, group: question.group, position: start))
            case .abandon(let id): recoveries.removeAll { $0.id == id }
            case .ping(let places):
                for place in places {
                    let socket = sockets.lastIndex {
                        $0.isOpenAtHub && $0.loop == place.loop && $0.slot == place.slot
                    }
                    if let socket {
                        stages[place.loop].hub.advanceTime(to: stages[place.loop].now)
                        try ask(socket)
                    }
                }
            default: break
            }
        }
    }

    private mutating func send(_ frame: Frame, _ audience: [Slot], _ loop: Int, _ kind: FrameKind) throws {
        let text = try frame.shown()
        for socket in sockets.indices
        where sockets[socket].loop == loop && sockets[socket].isOpenAtHub && audience.contains(sockets[socket].slot) {
            if kind == .change { sockets[socket].hasUnacknowledged = true }
            if !sockets[socket].isOfPast, clients[sockets[socket].client].socket == socket {
                sockets[socket].wire.append(text)
            }
        }
    }
}

import Hub
import Testing
import Wire

/// Clients that know nothing of cursors, cut off at random in every way there is, on two loops: at the end each has every
/// change since it first heard that it is subscribed. With every other seed the hub is killed on the way.
@Suite struct RecoveryModelTests {
    /// Behind the first come seeds of which each once lost something.
    @Test(arguments: Array(1...20) + [57, 82, 91, 121, 125]) func nothingIsLost(seed: Int) throws {
        var world = RecoveryWorld(seed: UInt64(seed))
        for step in 0..<800 {
            if seed % 2 == 0, step == 250 + seed * 10 { try world.killHub() }
            try world.step()
        }
        try world.settle()
        for client in world.clients {
            let since = try #require(client.since)
            let missing = (since..<world.rows).filter { !client.got.contains($0) }
            #expect(missing.isEmpty, "client \(client.number) of seed \(seed)")
        }
        #expect(world.losses > 10)
        #expect(world.recovered > 10)
    }
}

/// A feed, two hubs and clients with wires between them that can break.
private struct RecoveryWorld {
    struct Client {
        let number: Int
        let subject: String?
        /// Of some the tokens tell devices apart.
        let session: String?
        var socket: Int?
        var ref = 0
        /// The first change that it has to get: it was committed after the client heard that it is subscribed.
        var since: Int?
        var got: Set<Int> = []
        /// Some come back long after others that look like them.
        var waits = 0
    }

    struct Socket {
        let loop: Int
        let slot: Slot
        let client: Int
        var isOpenAtHub = true
        /// Sent by the hub and not read yet.
        var wire: [String] = []
        var hasUnproven = false
    }

    struct Recovery {
        let id: RecoveryID
        let group: ChangeGroupID
        var position: Int
        var hasBegun = false
    }

    private static let config = #"{"postgres_changes":[{"event":"*","schema":"public","table":"todos"}]}"#
    private var random: SeededGenerator
    private var stages: [Stage]
    private var book = RecoveryBook.ofTheFirst
    /// Where the process before left its clients, as it stored it; nil in the first.
    private var restart: Int?
    private var sockets: [Socket] = []
    private var nextSlot: Slot = 1
    private var groups: [[ChangeGroupID]] = [[], []]
    private var recoveries: [Recovery] = []
    private var marks = [0]
    private(set) var clients: [Client]
    private(set) var rows = 0
    private(set) var losses = 0
    private(set) var recovered = 0

    init(seed: UInt64) {
        random = SeededGenerator(seed: seed)
        stages = Self.stages(book)
        clients = (0..<9).map {
            Client(number: $0, subject: $0 < 2 ? nil : ["ann", "bob"][$0 % 2], session: $0 < 7 ? nil : "session \($0)")
        }
    }

    private static func stages(_ book: RecoveryBook) -> [Stage] { (0...1).map { Stage(loop: $0, book: book) } }

    private mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &random) < percent }

    mutating func step() throws {
        switch Int.random(in: 0..<10, using: &random) {
        case 0, 1: try commit()
        case 2, 3: for socket in sockets.indices { try read(socket, most: Int.random(in: 0...40, using: &random)) }
        case 4, 5: try serve(mayStop: true)
        case 6: try tick()
        case 7, 8: if let client = clients.indices.randomElement(using: &random) { try comeOrGo(client) }
        default: try endHalfOpen()
        }
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
        let stored = marks[book.oldestMark() ?? marks.count - 1]
        restart = stored
        marks = [stored]
        recoveries = []
        groups = [[], []]
        book = RecoveryBook()
        stages = Self.stages(book)
    }

    /// Everybody is back, and has read all.
    mutating func settle() throws {
        for client in clients.indices where clients[client].socket == nil { try connect(client) }
        for _ in 0..<5 {
            try commit()
            try serve(mayStop: false)
            for socket in sockets.indices { try read(socket, most: .max) }
            try tick()
        }
    }

    // MARK: The feed

    private mutating func commit() throws {
        let first = rows
        rows += Int.random(in: 1...3, using: &random)
        marks.append(rows)
        for loop in stages.indices {
            for group in groups[loop] {
                for row in first..<rows {
                    try perform(loop) { $0.deliver(.change(Self.change(row, group))) }
                }
            }
            // A loop that nobody listens on hears of marks later.
            let mark = marks.count - 1
            if !groups[loop].isEmpty || chance(30) { try perform(loop) { $0.deliver(.boundary(mark)) } }
        }
    }

    private static func change(_ row: Int, _ group: ChangeGroupID) -> ChangeDelivery {
        ChangeDelivery(group: group, operation: .insert, ids: [1], data: Array(String(row).utf8))
    }

    private mutating func serve(mayStop: Bool) throws {
        for var recovery in recoveries {
            guard recoveries.contains(where: { $0.id == recovery.id }) else { continue }
            let end = mayStop && chance(40) ? Int.random(in: recovery.position...rows, using: &random) : rows
            let changes = (recovery.position..<end).map { Self.change($0, recovery.group) }
            let steps: [RecoveryStep] =
                (recovery.hasBegun ? [] : [.began(.resumed)]) + (changes.isEmpty ? [] : [.changes(changes)])
                + (end == rows ? [.caughtUp(cursor: "c")] : [])
            recovery.hasBegun = true
            recovery.position = end
            recoveries.removeAll { $0.id == recovery.id }
            if end < rows { recoveries.append(recovery) } else { recovered += 1 }
            for step in steps { try perform(recovery.id.loop) { $0.deliver(.recovery(recovery.id, step)) } }
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
        // Half-open: the hub does not hear of it for a while. Without a user nobody could tell whose it was.
        if clients[client].subject == nil || chance(50) { try close(socket) }
        if chance(70) { try connect(client) }
    }

    private mutating func endHalfOpen() throws {
        for socket in sockets.indices
        where sockets[socket].isOpenAtHub && clients[sockets[socket].client].socket != socket && chance(30) {
            try close(socket)
        }
    }

    private mutating func close(_ socket: Int) throws {
        sockets[socket].isOpenAtHub = false
        let slot = sockets[socket].slot
        try perform(sockets[socket].loop) { $0.disconnect(slot) }
    }

    private mutating func connect(_ client: Int) throws {
        let loop = Int.random(in: 0...1, using: &random)
        let slot = nextSlot
        nextSlot += 1
        sockets.append(Socket(loop: loop, slot: slot, client: client))
        clients[client].socket = sockets.count - 1
        stages[loop].connect(slot, subject: clients[client].subject, session: clients[client].session)
        clients[client].ref += 1
        let ref = clients[client].ref
        let now = stages[loop].now
        let text = #"["\#(ref)","\#(ref)","realtime:a","phx_join",{"config":\#(Self.config)}]"#
        try perform(loop) { try $0.receive(Array(text.utf8)[...], isBinary: false, from: slot, at: now) }
    }

    private mutating func read(_ socket: Int, most: Int) throws {
        let client = sockets[socket].client
        guard clients[client].socket == socket else { return }
        let texts = Array(sockets[socket].wire.prefix(most))
        sockets[socket].wire.removeFirst(texts.count)
        for text in texts {
            hear(text, client)
            if text.hasPrefix("ping ") {
                stages[sockets[socket].loop].hub.pong(text.dropFirst(5).utf8, from: sockets[socket].slot)
            }
        }
    }

    private mutating func hear(_ text: String, _ client: Int) {
        if text.contains("phx_reply"), clients[client].since == nil { clients[client].since = rows }
        if let range = text.firstRange(of: #""data":"#), let row = Int(text[range.upperBound...].prefix { $0.isNumber })
        {
            clients[client].got.insert(row)
        }
    }

    private mutating func tick() throws {
        for loop in stages.indices { _ = try stages[loop].tick(after: 50) }
        for socket in sockets.indices where sockets[socket].isOpenAtHub {
            let hub = stages[sockets[socket].loop].hub
            if !sockets[socket].hasUnproven {
                hub.nothingUnproven(of: sockets[socket].slot)
            } else if chance(50), let ping = hub.proofPing(for: sockets[socket].slot) {
                sockets[socket].wire.append(try ping.shown())
                sockets[socket].hasUnproven = false
            }
        }
    }

    // MARK: The gateway

    private mutating func perform(_ loop: Int, _ body: (Hub) throws -> Void) throws {
        _ = try stages[loop].watch(body)
        for action in stages[loop].actions {
            switch action {
            case .send(let frame, let slot, let kind): try send(frame, [slot], loop, kind)
            case .fanOut(let frame, let audience, _, let kind): try send(frame, audience, loop, kind)
            case .subscribe(let id, _):
                groups[loop].append(id)
                try perform(loop) { $0.changeSubscription(id, is: .live) }
            case .unsubscribe(let id): groups[loop].removeAll { $0 == id }
            case .recover(let id, let question):
                let position =
                    switch question.from {
                    case .mark(let mark): marks[mark]
                    case .restart: restart ?? marks[0]
                    case .cursor: 0
                    }
                recoveries.append(Recovery(id: id, group: question.group, position: position))
            case .abandon(let id): recoveries.removeAll { $0.id == id }
            default: break
            }
        }
    }

    private mutating func send(_ frame: Frame, _ audience: [Slot], _ loop: Int, _ kind: FrameKind) throws {
        let text = try frame.shown()
        for socket in sockets.indices
        where sockets[socket].loop == loop && sockets[socket].isOpenAtHub && audience.contains(sockets[socket].slot) {
            if kind == .change { sockets[socket].hasUnproven = true }
            if clients[sockets[socket].client].socket == socket { sockets[socket].wire.append(text) }
        }
    }
}

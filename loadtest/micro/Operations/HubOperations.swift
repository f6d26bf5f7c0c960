import Hub
import Matching
import Wire

/// The hub's decisions on frames: read, looked up, answered; what it makes of them is taken and not sent.
enum HubOperations {
    static var all: [Operation] {
        [
            Operation("hub/heartbeat") {
                let room = try makeRoom(of: 1)
                let frame = ClientText.heartbeat()
                return Operation.turns { _ in try room.say(frame, from: 0) }
            },
            Operation("hub/broadcast/1") { broadcast(in: try makeRoom(of: 2)) },
            Operation("hub/broadcast/1000") { broadcast(in: try makeRoom(of: 1001)) },
            Operation("hub/broadcast/1000_of_both_versions") {
                let room = try makeRoom(of: 501)
                try room.seat(501..<1001, .v1) { _ in ClientText.join(.v1) }
                return broadcast(in: room)
            },
            Operation("hub/broadcast/acknowledged") {
                let room = try makeRoom(of: 1001, joining: ClientText.join(acknowledges: true))
                return broadcast(in: room)
            },
            Operation("hub/broadcast/binary") {
                let room = try makeRoom(of: 1001)
                return Operation.turns { _ in try room.say(ClientText.binary, isBinary: true, from: 0) }
            },
            // From a socket in 100 channels, in the one that it joined last.
            Operation("hub/broadcast/among_100_channels") {
                let room = Room()
                room.connect(0..<2)
                for number in 0..<100 {
                    for slot in Slot(0)..<2 {
                        try room.join(ClientText.join(topic: "realtime:room:\(number)"), from: slot)
                    }
                }
                return broadcast(in: room, ClientText.broadcast(topic: "realtime:room:99"))
            },
            // Sent on another loop.
            Operation("hub/broadcast/relayed") {
                let room = try makeRoom(of: 1000)
                let relay = Relay.broadcast(
                    ChannelKey(topic: ClientText.topic, isPrivate: false), .text(ClientText.broadcastPayload))
                return Operation.turns { _ in
                    room.hub.applyRelay(relay)
                    room.take()
                }
            },
            Operation("hub/change/10") { try change(for: 10) },
            Operation("hub/change/1000") { try change(for: 1000) },
            // Somebody may ask who has the row, and nobody does; and its receipts are written back, of which none is proven.
            Operation("hub/change/10/alerts") { try change(for: 10, .alerts) },
            Operation("hub/change/1000/alerts") { try change(for: 1000, .alerts) },
            Operation("hub/change/10/receipts") { try change(for: 10, .alertsAndReceipts) },
            Operation("hub/change/1000/receipts") { try change(for: 1000, .alertsAndReceipts) },
            Operation("hub/access_token") {
                let room = try makeRoom(of: 1)
                let frame = ClientText.accessToken()
                return Operation.turns { _ in try room.say(frame, from: 0) }
            },
            Operation("hub/join_leave") {
                joinLeave(in: try makeRoom(of: 1000), ClientText.join(token: ClientText.token))
            },
            Operation("hub/join_leave/presence") {
                joinLeave(in: try makeRoom(of: 1000), ClientText.join(presenceKey: "user-1", token: ClientText.token))
            },
            Operation("hub/join_leave/changes") {
                let changes = "[\(ChatTable.entry(conversation: 1))]"
                return joinLeave(
                    in: try makeRoom(of: 1000, joining: ClientText.join(changes: changes)),
                    ClientText.join(changes: changes, token: ClientText.token))
            },
            // Among so many who each ask for a conversation of their own, as one more does.
            joinLeaveAmongFilters(1000), joinLeaveAmongFilters(4000), joinLeaveAmongFilters(8000),
            joinLeaveAmongFilters(18_000),
            Operation("hub/connect_disconnect") { try connectDisconnect() },
            Operation("hub/connect_disconnect/receipts") { try connectDisconnect(.alertsAndReceipts) },
        ]
    }

    private static func connectDisconnect(_ notes: Room.Notes = .none) throws -> Operation.Run {
        let room = Room(notes)
        try room.seat(0..<1000) { _ in ClientText.join() }
        let claims = FixedVerifier.claims(user: 1000)
        return Operation.turns { _ in
            room.hub.connect(1000, version: .v2, claims: claims)
            room.hub.disconnect(1000)
            room.take()
        }
    }

    /// A row that a group of sockets hears.
    private static func change(for sockets: Slot, _ notes: Room.Notes = .none) throws -> Operation.Run {
        let room = Room(notes)
        let join = ClientText.join(changes: "[\(ChatTable.entry(conversation: 1))]")
        room.connect(0..<sockets)
        let groups = try (0..<sockets).flatMap { try room.join(join, from: $0) }
        var encoder = ChangeEncoder()
        let event = FeedEvent.change(
            ChangeDelivery(
                group: groups[0], operation: .insert, ids: [12_345_678],
                data: encoder.encodeData(for: ChatTable.insert(conversation: 1)), message: notes == .none ? nil : 7,
                receipt: notes == .alertsAndReceipts
                    ? ReceiptRow(table: "public.messages", key: Array(#"{"id":7}"#.utf8)) : nil))
        let run = Operation.turns { _ in room.deliver(event) }
        // As many as are noted, so that each gives way to the next.
        if notes != .none { try run(9000) }
        return run
    }

    private static func joinLeaveAmongFilters(_ others: Int) -> Operation {
        Operation("hub/join_leave/changes_among/\(others)") {
            func join(_ number: Int) -> [UInt8] {
                ClientText.join(changes: "[\(ChatTable.entry(conversation: number))]", token: ClientText.token)
            }
            let room = Room()
            try room.seat(0..<Slot(others)) { join(Int($0)) }
            let slot = Slot(others)
            room.connect(slot..<slot + 1)
            let (frame, leave) = (join(others), ClientText.leave())
            return Operation.turns { _ in
                try room.join(frame, from: slot)
                try room.say(leave, from: slot)
            }
        }
    }

    private static func makeRoom(of members: Slot, joining join: [UInt8] = ClientText.join()) throws -> Room {
        let room = Room()
        try room.seat(0..<members) { _ in join }
        return room
    }

    private static func broadcast(in room: Room, _ frame: [UInt8] = ClientText.broadcast()) -> Operation.Run {
        Operation.turns { _ in try room.say(frame, from: 0) }
    }

    /// One more comes into a room, and goes.
    private static func joinLeave(in room: Room, _ join: [UInt8]) -> Operation.Run {
        let slot: Slot = 1000
        room.connect(slot..<slot + 1)
        let leave = ClientText.leave()
        return Operation.turns { _ in
            try room.say(join, from: slot)
            try room.say(leave, from: slot)
        }
    }
}

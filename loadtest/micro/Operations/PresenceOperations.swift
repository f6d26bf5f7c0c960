import Hub
import Wire

/// Who is there: a room whose members all watch, with keys of their own.
enum PresenceOperations {
    private static let statuses = ["online", "away"].map { ClientText.track(status: $0) }

    static var all: [Operation] {
        [
            // Long enough after the last change for the watchers to be told at once.
            Operation("presence/track/told") {
                let room = try makeRoom(of: 100)
                return Operation.turns { turn in
                    room.advance(by: 100)
                    try room.say(statuses[turn / 100 & 1], from: Slot(turn % 100))
                }
            },
            Operation("presence/track/merged", batch: 100, countedRuns: 10) {
                let room = try makeRoom(of: 100)
                return Operation.turns { turn in
                    for slot in Slot(0)..<100 { try room.say(statuses[turn & 1], from: slot) }
                    room.advance(by: 100)
                }
            },
            // As clients do that say the same again after every connect.
            Operation("presence/track/unchanged") {
                let room = try makeRoom(of: 100)
                return Operation.turns { _ in try room.say(statuses[0], from: 1) }
            },
            Operation("presence/untrack_track") {
                let room = try makeRoom(of: 100)
                return Operation.turns { turn in
                    room.advance(by: 100)
                    try room.say(ClientText.untrack, from: Slot(turn % 100))
                    try room.say(statuses[0], from: Slot(turn % 100))
                }
            },
            Operation("presence/join_track_leave") {
                let room = try makeRoom(of: 100)
                room.connect(100..<101)
                let join = ClientText.join(presenceKey: "user-100", token: ClientText.token)
                let leave = ClientText.leave()
                return Operation.turns { _ in
                    room.advance(by: 100)
                    try room.say(join, from: 100)
                    try room.say(statuses[0], from: 100)
                    try room.say(leave, from: 100)
                }
            },
            Operation("presence/state/1000/unchanged") {
                let room = try makeRoom(of: 1000)
                return Operation.turns { _ in
                    room.hub.showState(.presence(key), to: 1)
                    room.take()
                }
            },
            Operation("presence/state/1000/changed", countedRuns: 10) {
                let room = try makeRoom(of: 1000)
                return Operation.turns { turn in
                    room.advance(by: 100)
                    try room.say(statuses[turn & 1], from: 1)
                    room.hub.showState(.presence(key), to: 2)
                    room.take()
                }
            },
        ]
    }

    private static let key = ChannelKey(topic: ClientText.topic, isPrivate: false)

    /// So many members, all of them tracked.
    private static func makeRoom(of members: Slot) throws -> Room {
        let room = Room()
        try room.seat(0..<members) { ClientText.join(presenceKey: "user-\($0)") }
        for slot in 0..<members {
            try room.say(ClientText.track(), from: slot)
            room.advance(by: 100)
        }
        return room
    }
}

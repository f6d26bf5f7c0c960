import Hub

/// Typing in a channel of ten.
enum TypingOperations {
    private static let start = ClientText.typing(true)
    private static let stop = ClientText.typing(false)

    static var all: [Operation] {
        [
            // Long enough after the last one for the others to be told.
            Operation("typing/start/told") {
                let room = try makeRoom()
                return Operation.turns { _ in
                    room.advance(by: 1000)
                    try room.say(start, from: 1)
                }
            },
            // So soon after the last one that the others need not be told.
            Operation("typing/start/untold") {
                let room = try makeRoom()
                return Operation.turns { _ in try room.say(start, from: 1) }
            },
            Operation("typing/start_stop") {
                let room = try makeRoom()
                return Operation.turns { _ in
                    room.advance(by: 1000)
                    try room.say(start, from: 1)
                    try room.say(stop, from: 1)
                }
            },
        ]
    }

    private static func makeRoom() throws -> Room {
        let room = Room()
        try room.seat(0..<10) { _ in ClientText.join() }
        return room
    }
}

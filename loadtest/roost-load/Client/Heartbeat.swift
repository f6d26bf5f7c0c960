/// When which socket sends its heartbeat: evenly spread, so that the sockets do not beat in step.
struct Heartbeat {
    private let sockets: Int
    private let interval: UInt64
    private var due: UInt64
    private var turn = 0

    init(sockets: Int, period: Int, from now: UInt64) {
        self.sockets = sockets
        interval = period > 0 && sockets > 0 ? UInt64(period) * 1_000_000_000 / UInt64(sockets) : 0
        due = interval > 0 ? now + interval : .max
    }

    var nextDue: UInt64 { due }

    /// The next socket whose time has come.
    mutating func next(at now: UInt64) -> Int? {
        guard now >= due else { return nil }
        due += interval
        defer { turn = (turn + 1) % sockets }
        return turn
    }
}

/// When which socket sends its heartbeat: evenly spread, so that the sockets do not beat in step.
struct Heartbeat {
    static let frame = OutgoingFrame.make(.text, #"[null,"h","phoenix","heartbeat",{}]"#.utf8)
    private var sockets = 0
    private var interval: UInt64 = 0
    private var due: UInt64 = 0
    private var turn = 0

    mutating func start(sockets: Int, period: Int) {
        guard period > 0, sockets > 0 else { return }
        self.sockets = sockets
        interval = UInt64(period) * 1_000_000_000 / UInt64(sockets)
        due = Clock.now + interval
    }

    /// The next socket whose time has come.
    mutating func next() -> Int? {
        guard interval > 0, Clock.now >= due else { return nil }
        due += interval
        defer { turn = (turn + 1) % sockets }
        return turn
    }
}

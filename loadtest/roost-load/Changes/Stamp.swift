/// The text in a row by which a delivery is recognised: `RL=` run `.` tick `;`.
struct Stamp: Sendable {
    private let prefix: String

    init(run: UInt32) { prefix = "RL=\(ChangesPlan.hex(run, 8))." }

    func text(of tick: Int) -> String { "\(prefix)\(tick);" }

    var needle: Needle { Needle(prefix) }

    /// The tick whose digits begin at `start`.
    static func tick(in frame: UnsafeRawBufferPointer, at start: Int) -> Int? {
        var tick = 0
        var at = start
        while at < frame.count, frame[at] >= 48, frame[at] <= 57 {
            tick = tick &* 10 &+ Int(frame[at] - 48)
            at += 1
        }
        return at > start && at < frame.count && frame[at] == UInt8(ascii: ";") ? tick : nil
    }
}

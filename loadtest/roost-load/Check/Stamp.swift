import Wire

/// What a message carries so that it is recognised wherever it arrives.
///
/// On the wire: `RL=`, then in hexadecimal the run (8), a letter for the kind, the stream (6), the number (8), and where
/// latency counts from the message itself, when it was due and when it was sent (14 each). All of one length, so that
/// formats that state the length of a message beforehand can carry it.
struct Stamp: Equatable {
    enum Kind: UInt8 {
        case row = 0x72
        case broadcast = 0x62
        case typing = 0x74
        case presence = 0x70
    }
    var kind: Kind
    /// Who speaks: the messages of one stream are numbered 0, 1, 2, … and arrive in this order.
    var stream: Int
    var number: Int
    /// Nanoseconds by `MonotonicClock`; zero in a stamp without times.
    var due: UInt64 = 0
    var sent: UInt64 = 0
}

/// Writes and finds the stamps of one run; those of others in the same channels are not seen.
struct StampCode: Sendable {
    static let timelessCount = 26
    static let count = 54
    let needle: Needle
    private let prefix: [UInt8]

    init(run: UInt32) {
        let text = "RL=" + Hexadecimal.text(UInt64(run), width: 8)
        prefix = Array(text.utf8)
        needle = Needle(text)
    }

    func bytes(of stamp: Stamp) -> [UInt8] {
        var bytes = timeless(stamp)
        bytes.reserveCapacity(Self.count)
        Hexadecimal.append(stamp.due, width: 14, to: &bytes)
        Hexadecimal.append(stamp.sent, width: 14, to: &bytes)
        return bytes
    }

    /// For rows: when they were due and committed is in the writer's log.
    func timelessText(of stamp: Stamp) -> String { String(decoding: timeless(stamp), as: UTF8.self) }

    private func timeless(_ stamp: Stamp) -> [UInt8] {
        var bytes = prefix
        bytes.append(stamp.kind.rawValue)
        Hexadecimal.append(UInt64(stamp.stream), width: 6, to: &bytes)
        Hexadecimal.append(UInt64(stamp.number), width: 8, to: &bytes)
        return bytes
    }

    /// The stamp whose needle ends at `start`.
    func read(_ frame: UnsafeRawBufferPointer, at start: Int) -> Stamp? {
        let rest = start + Self.timelessCount - 11
        guard rest <= frame.count, let kind = Stamp.Kind(rawValue: frame[start]),
            let stream = Hexadecimal.parseNumber(frame, start + 1, width: 6),
            let number = Hexadecimal.parseNumber(frame, start + 7, width: 8)
        else { return nil }
        var stamp = Stamp(kind: kind, stream: Int(stream), number: Int(number))
        if kind != .row, rest + 28 <= frame.count, let due = Hexadecimal.parseNumber(frame, rest, width: 14),
            let sent = Hexadecimal.parseNumber(frame, rest + 14, width: 14)
        {
            (stamp.due, stamp.sent) = (due, sent)
        }
        return stamp
    }
}

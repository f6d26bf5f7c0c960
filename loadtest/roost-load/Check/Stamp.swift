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
    /// Nanoseconds by `Clock`; zero in a stamp without times.
    var due: UInt64 = 0
    var sent: UInt64 = 0
}

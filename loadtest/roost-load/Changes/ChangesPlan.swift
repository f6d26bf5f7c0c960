/// Who subscribes to what, and which insert goes where. Tick `i` of the schedule is insert `i / conversations` of
/// conversation `i % conversations`.
struct ChangesPlan: Sendable {
    let subscribers: Int
    let conversations: Int
    let rate: Double
    let total: Int
    /// Distinguishes this run's rows from those of others in the same table.
    let run: UInt32

    init(subscribers: Int, conversations: Int, rate: Double, seconds: Double, run: UInt32) {
        self.subscribers = subscribers
        self.conversations = conversations
        self.rate = rate
        self.run = run
        total = Int((rate * seconds).rounded())
    }

    func conversation(ofTick tick: Int) -> Int { tick % conversations }
    func conversation(ofSlot slot: Int) -> Int { slot % conversations }

    /// How many inserts a conversation gets.
    func inserts(into conversation: Int) -> Int { (total - conversation + conversations - 1) / conversations }

    /// How many sockets hear a conversation.
    func audience(of conversation: Int) -> Int { (subscribers - conversation + conversations - 1) / conversations }

    /// When tick `tick` is due, counted from the start.
    func offset(ofTick tick: Int) -> UInt64 { UInt64(Double(tick) * 1e9 / rate) }

    /// The conversation's id in the database.
    func uuid(of conversation: Int) -> String {
        "\(Self.hex(run, 8))-0000-4000-8000-\(Self.hex(UInt32(conversation), 12))"
    }

    static func hex(_ value: UInt32, _ width: Int) -> String {
        let digits = String(value, radix: 16)
        return String(repeating: "0", count: width - digits.count) + digits
    }
}

/// What is kept of broadcasts, in memory, on channels that ask for it (`config.broadcast.history`).
extension Setting {
    static let historyMessages = Setting(
        "history.messages", .integer(0...100_000), standard: .integer(100), unit: "messages", isReloaded: true,
        "How many broadcasts a channel that asks for history keeps for members that come back. 0: no channel keeps any."
    )

    static let historySeconds = Setting(
        "history.seconds", .integer(1...3600), standard: .integer(60), unit: "seconds", isReloaded: true,
        "How long it keeps them.")

    static let historyBytesPerChannel = Setting(
        "history.bytes_per_channel", .integer(1024...1_073_741_824), standard: .integer(1_048_576), unit: "bytes",
        isReloaded: true,
        "How much one channel keeps. What falls out is missed, and those who missed it are told so.")

    static let historyBytes = Setting(
        "history.bytes", .integer(1024...68_719_476_736), standard: .integer(67_108_864), unit: "bytes",
        isReloaded: true,
        "How much all channels keep together; beyond that the oldest messages go first, whosever they are.")
}

/// Messages to this hub that wait until the exact sequence after which they are valid has been applied.
struct HeldMessages {
    static let mostMessages = 4_096
    /// The estimated cost of a message beyond its payload.
    private static let overhead = 192

    let mostBytes: Int
    private(set) var bytes = 0
    private(set) var count = 0
    private var waiting: [HubIdentity: [DirectMessage]] = [:]

    init(mostBytes: Int) { self.mostBytes = mostBytes }

    /// False if there is no room.
    mutating func holdBack(_ message: DirectMessage) -> Bool {
        let cost = message.payload.count + Self.overhead
        guard count < Self.mostMessages, bytes + cost <= mostBytes else { return false }
        bytes += cost
        count += 1
        waiting[message.sender, default: []].append(message)
        return true
    }

    /// The lowest sequence that a message of this hub waits for.
    func nextSequence(of hub: HubIdentity) -> UInt64? { waiting[hub]?.lazy.compactMap(\.afterSequence).min() }

    /// Removes and returns the messages that wait for this sequence or an earlier one, in order of arrival.
    mutating func releaseMessages(_ hub: HubIdentity, upTo sequence: UInt64) -> [DirectMessage] {
        guard let messages = waiting[hub] else { return [] }
        let ready = messages.filter { ($0.afterSequence ?? 0) <= sequence }
        guard !ready.isEmpty else { return [] }
        let rest = messages.filter { ($0.afterSequence ?? 0) > sequence }
        waiting[hub] = rest.isEmpty ? nil : rest
        count -= ready.count
        bytes -= ready.reduce(0) { $0 + $1.payload.count + Self.overhead }
        return ready
    }
}

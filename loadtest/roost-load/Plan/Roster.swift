/// Who is in which of a worker's conversations. A membership is one socket's part in one of them, and has the number
/// `slot * perSocket + i`.
struct Roster: Sendable {
    let perSocket: Int
    /// The sockets' numbers among those of all workers.
    let numbers: [Int]
    /// Memberships by conversation.
    let members: [[Int]]
    /// Conversations by membership; -1 where there is none.
    let conversations: [Int]
    /// The place of a membership in its conversation.
    let places: [Int]

    init(_ plan: LoadPlan, worker: Int) {
        perSocket = max(1, plan.chat.conversationsPerSocket)
        if plan.chat.members > 0 {
            let share = Share(of: worker, plan)
            numbers = Array(share.first..<(share.first + share.count))
            members = Self.groups(plan, slots: share.count, perSocket, worker)
        } else {
            // Conversation c of all is this worker's if c % workers is.
            let conversations = plan.channels
            let own = { (number: Int) in number % conversations % plan.workers == worker }
            let numbers = (0..<plan.sockets).filter(own)
            var members = [[Int]](repeating: [], count: Self.conversations(of: worker, plan))
            for (slot, number) in numbers.enumerated() { members[number % conversations / plan.workers].append(slot) }
            self.numbers = numbers
            self.members = members
        }
        var conversations = [Int](repeating: -1, count: numbers.count * perSocket)
        var places = conversations
        for (conversation, memberships) in members.enumerated() {
            for (place, membership) in memberships.enumerated() {
                (conversations[membership], places[membership]) = (conversation, place)
            }
        }
        self.conversations = conversations
        self.places = places
    }

    /// How many conversations a worker has, without making its roster.
    static func conversations(of worker: Int, _ plan: LoadPlan) -> Int {
        guard plan.chat.members > 0 else { return (plan.channels - worker + plan.workers - 1) / plan.workers }
        let count = Share(of: worker, plan).count
        return max(1, count / plan.chat.members) * max(1, plan.chat.conversationsPerSocket)
    }

    /// Each round puts every socket into one conversation, in another order each time.
    private static func groups(_ plan: LoadPlan, slots: Int, _ perSocket: Int, _ worker: Int) -> [[Int]] {
        var random = SplitMix(seed: plan.seed &+ UInt64(worker))
        var groups: [[Int]] = []
        let perRound = max(1, slots / plan.chat.members)
        for round in 0..<perSocket {
            let order = round == 0 ? Array(0..<slots) : (0..<slots).shuffled(using: &random)
            let first = groups.count
            groups += [[Int]](repeating: [], count: perRound)
            // Those left over make some conversations one larger.
            for (index, slot) in order.enumerated() {
                groups[first + index * perRound / slots].append(slot * perSocket + round)
            }
        }
        return groups
    }
}

/// Which socket is in which channels: socket `n` is in `perSocket` of them, from channel `n × perSocket` on.
struct ChannelMap: Sendable {
    let sockets: Int
    let channels: Int
    let perSocket: Int

    init(_ plan: LoadPlan) {
        sockets = plan.sockets
        channels = plan.channels
        perSocket = min(plan.channelsPerSocket, plan.channels)
    }

    func channel(_ index: Int, ofSocket number: Int) -> Int { (number * perSocket + index) % channels }

    /// Which of the socket's channels it is; nil if it is in none of them.
    @inline(__always)
    func index(ofChannel channel: Int, onSocket number: Int) -> Int? {
        let distance = channel - number * perSocket % channels
        let index = distance < 0 ? distance + channels : distance
        return channel < channels && index < perSocket ? index : nil
    }
}

/// The sockets of one worker: a run of numbers.
struct Share: Sendable {
    let worker: Int
    let first: Int
    let count: Int

    init(of worker: Int, _ plan: LoadPlan) {
        self.worker = worker
        first = plan.sockets * worker / plan.workers
        count = plan.sockets * (worker + 1) / plan.workers - first
    }
}

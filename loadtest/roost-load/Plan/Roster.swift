/// Who is in which of a worker's conversations. A seat is one socket's place in one of them: seat `slot * perSocket + i`.
struct Roster: Sendable {
    let perSocket: Int
    /// The sockets' numbers among those of all workers.
    let numbers: [Int]
    /// Seats by conversation.
    let members: [[Int]]
    /// Conversations by seat; -1 where there is none.
    let conversations: [Int]
    /// The place of a seat in its conversation.
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
        for (conversation, seats) in members.enumerated() {
            for (place, seat) in seats.enumerated() { (conversations[seat], places[seat]) = (conversation, place) }
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

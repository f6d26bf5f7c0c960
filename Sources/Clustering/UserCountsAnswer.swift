import Hub
import Wire

/// Answers other hubs that ask how many sockets this hub's users have: the question is one byte, the requested part
/// (`UserCopies.part`), and the answer has the users of that part.
struct UserCountsAnswer: PeerAnswering {
    let tally: UserTally

    func answer(_ question: [UInt8], of hub: String, reply: @escaping @Sendable ([UInt8]?) -> Void) {
        guard let part = question.first, part < UserCopies.parts else { return reply(nil) }
        var out = RelayWriter()
        out.users(tally.counts { UserCopies.part(of: $0) == Int(part) })
        reply(out.bytes)
    }
}

extension RelayWriter {
    mutating func users(_ counts: [(user: Name, count: Int)]) {
        number(counts.count)
        for (user, count) in counts {
            name(user)
            number(count)
        }
    }
}

extension RelayReader {
    mutating func users() throws(Malformed) -> [(user: Name, count: Int)] {
        var counts: [(user: Name, count: Int)] = []
        for _ in 0..<(try count()) { counts.append((try name(), try count())) }
        return counts
    }
}

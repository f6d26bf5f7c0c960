import Hub
import Wire

/// Answers other hubs that ask how many sockets this hub's users have: the question is one byte, the requested part
/// (`UserCopies.part`), and the answer has the users of that part.
struct UserCountsAnswer: PeerAnswering {
    let tally: UserTally

    func answerQuestion(_ question: [UInt8], of hub: String, reply: @escaping @Sendable ([UInt8]?) -> Void) {
        guard let part = question.first, part < UserCopies.parts else { return reply(nil) }
        var out = RelayWriter()
        out.appendUsers(tally.counts { UserCopies.part(of: $0) == Int(part) })
        reply(out.bytes)
    }
}

extension RelayWriter {
    mutating func appendUsers(_ counts: [(user: Name, count: Int)]) {
        appendNumber(counts.count)
        for (user, count) in counts {
            appendName(user)
            appendNumber(count)
        }
    }
}

extension RelayReader {
    mutating func readUsers() throws(Malformed) -> [(user: Name, count: Int)] {
        var counts: [(user: Name, count: Int)] = []
        for _ in 0..<(try readCount()) { counts.append((try readName(), try readCount())) }
        return counts
    }
}

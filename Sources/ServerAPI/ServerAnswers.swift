package import Gateway
import Hub

/// Answers backends' questions for this hub, whether they arrived here or through another hub.
package struct ServerAnswers: Sendable {
    private let gateway: Gateway

    package init(gateway: Gateway) { self.gateway = gateway }

    /// - Parameter reply: receives the answer and the cost for the loop that it cost most, in microseconds.
    func answerQuestion(
        _ question: ServerQuestion, then reply: @escaping @Sendable (_ part: ServerPart, _ cost: Int) -> Void
    ) {
        switch question {
        case .channels(let prefix, let after, let limit):
            gateway.channelPage(prefix: prefix, after: after, limit: limit) { reply(.channels($0), $1) }
        case .channel(let key): gateway.count(of: key) { reply(.channels(ChannelPage(channels: [$0])), $1) }
        case .user(let user):
            let isOnline = gateway.isOnline(user) ?? false
            gateway.connections(ofUser: user, limit: ServerPart.UserReport.most) { connections, count, cost in
                reply(.user(.init(isOnline: isOnline, count: count, connections: connections)), cost)
            }
        case .stats:
            let figures = gateway.figures
            let counts = ServerPart.HubCounts(
                connections: figures.reduce(0) { $0 + $1.connections },
                memberships: figures.reduce(0) { $0 + $1.hub.memberships })
            reply(.stats(counts), 0)
        case .disconnect(let user): gateway.disconnectByBackend(user) { reply(.count($0), $1) }
        case .unsubscribe(let user, let key, let seconds):
            gateway.unsubscribe(user, from: key, seconds: seconds) { count, cost in
                reply(count.map { .count($0) } ?? .full, cost)
            }
        case .refresh(let user): gateway.refresh(user) { reply(.count($0), $1) }
        }
    }
}

extension ServerAnswers: PeerAnswering {
    package func answerQuestion(_ question: [UInt8], of hub: String, reply: @escaping @Sendable ([UInt8]?) -> Void) {
        guard let question = ServerQuestion(question) else { return reply(nil) }
        answerQuestion(question) { reply($0.encoded(cost: $1)) }
    }
}

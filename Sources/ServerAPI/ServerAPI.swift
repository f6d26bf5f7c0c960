package import Gateway
package import HTTP
package import Hub
package import Logging
import Synchronization
package import Wire

/// The HTTP API for backends: lists channels, their members and a user's connections, and acts on users. Requires a
/// token of the role `service_role`.
///
/// This hub's loops answer for this hub, and the other hubs for themselves, over the cluster's link and within a
/// deadline; an answer names the hubs that did not reply. Safe from any thread; never waits.
package final class ServerAPI: HTTPHandler {
    private let gateway: Gateway
    private let verifier: any TokenVerifier
    private let clock: @Sendable () -> HubTime
    /// The hub's own name.
    private let name: String
    private let own: ServerAnswers
    private let peers: Peers?
    private let logger: Logger
    private let budget = Mutex(CallBudget())

    /// The time limit for the other hubs' answers: one heartbeat of theirs, within which every live hub answers.
    private static let patience = Duration.milliseconds(500)
    private static let typists = 100

    /// Access to the other hubs.
    package struct Peers: Sendable {
        let asking: any PeerAsking
        /// The names of the hubs that are unreachable now.
        let unreached: @Sendable () -> [String]

        /// Replaces the names if no other hub is reachable and their names are unknown.
        package static let unknown = "*"

        package init(asking: any PeerAsking, unreached: @escaping @Sendable () -> [String]) {
            self.asking = asking
            self.unreached = unreached
        }
    }

    /// - Parameters:
    ///   - own: answers for this hub, to this hub and to others.
    ///   - peers: nil for a single hub.
    package init(
        gateway: Gateway, verifier: any TokenVerifier, name: String, own: ServerAnswers, peers: Peers?, logger: Logger,
        clock: @escaping @Sendable () -> HubTime
    ) {
        self.gateway = gateway
        self.verifier = verifier
        self.name = name
        self.own = own
        self.peers = peers
        self.logger = logger
        self.clock = clock
    }

    package func judge(_ head: HTTPRequest) -> HTTPVerdict {
        guard let route = ServerRoute(path: head.path) else { return .notServed }
        guard head.method == route.method || head.method == .head && route.method == .get else {
            let method = route.method.rawValue
            var response = HTTPResponse.message(405, "Use \(method)")
            response.headers.append(("allow", (method == "GET" ? "GET, HEAD" : method) + ", OPTIONS"))
            return .answered(response)
        }
        guard let token = head.token else {
            return .answered(.message(401, "A token is missing: send the header Authorization: Bearer TOKEN"))
        }
        do {
            let claims = try verifier.verifyToken(token, at: clock())
            guard claims.role == "service_role" else {
                return .answered(.message(403, "This takes a token with the role service_role"))
            }
        } catch {
            return .answered(.message(401, error.message))
        }
        return .admittedEvenIfEmpty
    }

    package func respond(to request: HTTPRequest, later reply: HTTPReply) -> HTTPAnswer? {
        guard let route = ServerRoute(path: request.path) else { return nil }
        let call: ServerCall
        do { call = try ServerCall(route, request) } catch {
            return .now(.message(error.status, error.sentence))
        }
        switch budget.withLock({ $0.startCall(at: clock().monotonic) }) {
        case .granted: break
        case .spent(let seconds):
            let sentence =
                "Backends have asked for more than a tenth of an event loop's time; try again in \(seconds) s"
            return .now(.message(429, sentence).retryingAfter(seconds))
        case .tooManyOpen:
            return .now(
                .message(503, "Too many requests of backends are under way; try again in a moment").retryingAfter(1))
        }
        performCall(call, reply)
        return .later
    }

    private func performCall(_ call: ServerCall, _ reply: HTTPReply) {
        switch call {
        case .all(let question):
            askHubs(question) { answer in
                if question.isDeed { self.logDeed(question, answer) }
                reply.send(answer.response(to: question))
            }
        case .presence(let key, let after, let limit):
            gateway.presencePage(of: key, after: after, limit: limit) { page, cost in
                self.recordCost(cost)
                reply.send(page.response(for: key, incomplete: self.peers?.unreached() ?? []))
            }
        case .typing(let key):
            gateway.typists(in: key, limit: Self.typists) { typists, cost in
                self.recordCost(cost)
                let incomplete = self.peers?.unreached() ?? []
                let response = HTTPResponse.served { out in
                    out.addShownKey(key)
                    out.array("typists", typists) { out, typist in
                        out.object {
                            $0.writeKey("user")
                            if let user = typist.user { $0.writeValue(user.text) } else { $0.writeNull() }
                            $0.writeMember("payload", json: typist.payload)
                        }
                    }
                    out.writeMember("incomplete", incomplete)
                }
                reply.send(response)
            }
        }
    }

    private func recordCost(_ cost: Int) { budget.withLock { $0.endCall(cost: cost, at: clock().monotonic) } }

    private func logDeed(_ question: ServerQuestion, _ answer: ServerAnswer) {
        let deed =
            switch question {
            case .disconnect(let user): "disconnected the user \(user)"
            case .unsubscribe(let user, let key, let seconds):
                "took the user \(user) out of \(key.name)" + (seconds.map { " for \($0) s" } ?? "")
            case .refresh(let user): "had the rights of the user \(user) decided anew"
            default: ""
            }
        let silent = answer.incomplete.isEmpty ? "" : "; not answered by \(answer.incomplete.joined(separator: ", "))"
        logger.notice("a backend \(deed)\(silent)")
    }

    /// Ends a user's connections for the operator's page, as a backend's call does.
    package func disconnectUser(
        _ user: Name, then reply: @escaping @Sendable (_ count: Int, _ silent: [String]) -> Void
    ) {
        budget.withLock { $0.startOperatorCall() }
        askHubs(.disconnect(user)) { answer in
            let count = answer.parts.reduce(0) { if case .count(let count) = $1.part { $0 + count } else { $0 } }
            reply(count, answer.incomplete)
        }
    }

    // MARK: All hubs

    private enum Heard: Sendable {
        case own(ServerPart, cost: Int)
        case others([PeerAnswer], unreached: [String])
    }

    /// Asks this hub and the others at once.
    private func askHubs(_ question: ServerQuestion, then reply: @escaping @Sendable (ServerAnswer) -> Void) {
        let collector = AnswerCollector<Heard>(count: peers == nil ? 1 : 2) { heard in
            var answer = ServerAnswer()
            var most = 0
            for part in heard {
                switch part {
                case .own(let part, let cost):
                    answer.parts.insert(.init(hub: self.name, part: part), at: 0)
                    most = max(most, cost)
                case .others(let answers, let unreached):
                    answer.incomplete = unreached
                    for other in answers {
                        guard let (part, cost) = other.body.flatMap({ ServerPart.decoded($0) }) else {
                            answer.incomplete.append(other.hub)
                            continue
                        }
                        answer.parts.append(.init(hub: other.hub, part: part))
                        most = max(most, cost)
                    }
                    answer.incomplete.sort()
                }
            }
            self.recordCost(max(most, CallBudget.least) * answer.parts.count)
            reply(answer)
        }
        own.answerQuestion(question) { collector.add(.own($0, cost: $1)) }
        guard let peers else { return }
        // While the link is down the others are not asked.
        let unreached = peers.unreached()
        guard unreached.isEmpty else { return collector.add(.others([], unreached: unreached)) }
        peers.asking.askHubs(.backends, question.encoded, of: nil, within: Self.patience) { answers in
            collector.add(.others(answers, unreached: answers.isEmpty ? peers.unreached() : []))
        }
    }
}

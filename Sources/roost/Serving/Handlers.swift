import HTTP

/// A chain of HTTP handlers: the first that serves a path answers.
struct Handlers: HTTPHandler {
    let handlers: [any HTTPHandler]

    func judge(_ head: HTTPRequest) -> HTTPVerdict {
        for handler in handlers {
            let verdict = handler.judge(head)
            if case .notServed = verdict { continue }
            return verdict
        }
        return .notServed
    }

    func respond(to request: HTTPRequest, later reply: HTTPReply) -> HTTPAnswer? {
        for handler in handlers {
            if let answer = handler.respond(to: request, later: reply) { return answer }
        }
        return nil
    }
}

import HTTP
import Hub

/// Messages by HTTP, and the rights they take.
extension EventLoop {
    /// Publishes at once what needs no right; else asks, and nil is returned: the exchange is answered later.
    func publish(_ publication: Publication, exchange: Int) -> HTTPResponse? {
        guard !publication.undecided.isEmpty else { return carryOut(publication) }
        publications[exchange] = publication
        for topic in publication.undecided {
            ask(AuthorizationQuestion(claims: publication.claims, topic: topic, right: .write(.broadcast))) {
                .publicationRight(exchange, topic: topic, $0)
            }
        }
        return nil
    }

    /// The policies' word on one topic. The connection may be gone by now; what it sent is published all the same.
    func decide(_ exchange: Int, topic: String, _ outcome: AuthorizationOutcome) {
        publications[exchange]?.decide(topic, outcome)
        guard let publication = publications[exchange], publication.undecided.isEmpty else { return }
        publications[exchange] = nil
        httpReplied(exchange, carryOut(publication))
    }

    private func carryOut(_ publication: Publication) -> HTTPResponse {
        if publication.isAllowed {
            hub.advance(to: now())
            for message in publication.messages {
                hub.publish(message.broadcast, to: message.key, by: publication.claims.subject)
            }
            execute()
        }
        return publication.response.readableAnywhere
    }

    /// Asks who decides about private channels; the answer comes back to this loop.
    func ask(_ question: AuthorizationQuestion, answer: @escaping @Sendable (AuthorizationOutcome) -> LoopTask) {
        guard let authority else { return inbox.post(answer(.unavailable)) }
        authority.decide(question) { [inbox] in inbox.post(answer($0)) }
    }
}

import DurableStreams
import HTTP
import Hub
import Streams
import Wire

// MARK: Bodies appended as they arrive

extension StreamsAPI {
    func begin(_ sender: Sender, exchange: Int) { uploads.begin(sender, exchange: exchange, rights) }
    func take(_ piece: [UInt8], exchange: Int) { uploads.take(piece, exchange: exchange) }
    func end(_ piece: [UInt8], exchange: Int) { uploads.end(piece, exchange: exchange) }
    func appended(_ exchange: Int, _ answer: StreamAnswer) {
        if refreshing[exchange] != nil {
            refreshed(exchange, answer)
        } else if let sender = forwards.sender(of: exchange) {
            opened(exchange, answer, sender)
        } else {
            uploads.appended(exchange, answer)
        }
    }
}

// MARK: Forwarded requests

extension StreamsAPI {
    func forward(_ sender: StreamForwards.Sender, _ body: [UInt8], exchange: Int) -> HTTPOutcome {
        forwards.perform(sender, body, exchange: exchange, rights)
    }

    private func opened(_ exchange: Int, _ answer: StreamAnswer, _ sender: StreamForwards.Sender) {
        guard let reader = forwards.opened(exchange, answer) else { return }
        beginning[exchange] = reader
        var head = StreamEvents.headOfMessages.readableAnywhere
        if let stream = reader.stream { head.headers.append(("stream-generation", stream.id.text)) }
        if sender.isByCookie { head.headers.append(("access-control-allow-credentials", "true")) }
        loop.router.replied(
            exchange,
            .streams(StreamingAnswer(head: head, claims: sender.claims, exchange: exchange, source: self)))
    }
}

// MARK: Events

extension StreamsAPI: StreamingSource {
    func began(_ exchange: Int, _ slot: Slot, isChunked: Bool) {
        guard var reader = beginning.removeValue(forKey: exchange) else { return }
        let stream = service?.watchStream(reader.name, by: loop.index)
        // It may have been created since the look-up.
        if reader.stream == nil, stream?.id != reader.known { reader.stream = stream }
        readers.add(reader, at: slot, isChunked: isChunked)
    }

    func refused(_ exchange: Int) { beginning[exchange] = nil }

    func ended(_ slot: Slot) {
        guard let reader = readers.remove(slot) else { return }
        service?.unwatchStream(reader.name, by: loop.index)
        guard reader.cancels, let stream = reader.stream, stream.snapshot.status.ending == nil else { return }
        service?.submitRequest(.cancel(stream.id, by: reader.bearer), on: reader.name) { _ in }
    }

    func hasRoom(_ slot: Slot) { readers.hasRoom(slot) }

    func heartbeat(_ slot: Slot, isChunked: Bool) {
        loop.delivery.send(Frame(body: StreamEvents.comment, isChunked: isChunked), to: slot)
    }

    func farewell(_ slot: Slot) -> Frame? {
        readers.isEndedByHub(slot)
        return nil
    }
}

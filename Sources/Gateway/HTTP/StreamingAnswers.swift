import CWebSockets
import Glibc
import HTTP
import Hub
import Wire

/// An HTTP answer whose body goes on: events for whoever cannot hold a WebSocket.
struct StreamingAnswer {
    /// Status, type and fields; it has no body.
    var head: HTTPResponse
    let claims: Claims
    /// What was asked, for `source`.
    let exchange: Int
    let source: any StreamingSource
    /// Nothing of it is sent until its source says with what it begins, or that it does not (`StreamingAnswers.begin`, `refuse`).
    var isHeld = false
}

/// A feature whose answers go on. On the loop's thread.
protocol StreamingSource: AnyObject {
    /// From here on frames may be sent to the slot, the first of them now.
    ///
    /// - Parameter isChunked: frames are made by `Frame(body:isChunked:)` with this.
    func began(_ exchange: Int, _ slot: Slot, isChunked: Bool)
    /// It does not begin: there are too many already, or nobody waits for it.
    func refused(_ exchange: Int)
    /// The answer is over, or its reader gone.
    func ended(_ slot: Slot)
    /// All that was pending is taken, or nearly, after `Delivery.awaitRoom`.
    func hasRoom(_ slot: Slot)
    /// Nothing was sent for a while.
    func heartbeat(_ slot: Slot, isChunked: Bool)
    /// The last thing to say before an end that the hub chose.
    func farewell(_ slot: Slot) -> Frame?
}

/// The answers of a loop that go on: each has a slot among the sockets, so that what is sent to many is shared and written as
/// frames for WebSockets are, with the same bounds for whoever reads slowly.
///
/// Reading never stops, because the end of the input is how a client's end is noticed at once. A client whose machine is gone takes
/// nothing for 30 seconds (`TCP_USER_TIMEOUT`); something is sent every 15.
final class StreamingAnswers {
    /// Lives as long as the process.
    private unowned(unsafe) let loop: EventLoop
    private var open: [Slot: Answer] = [:]
    /// Held answers that do not begin, until the end of the turn.
    private var refused: [(slot: Slot, response: HTTPResponse)] = []

    private struct Answer {
        let peer: HTTPPeer
        let source: any StreamingSource
        let client: Admission.Client
        let hold: HeldRequests.Hold
        let isChunked: Bool
        /// Its head, and of which page it is, while nothing of it is sent.
        var held: (head: HTTPResponse, origin: String?)?
    }

    /// Seconds of silence after which something is sent: less than any proxy waits.
    private static let heartbeat: Int32 = 15
    /// Seconds for which an answer may be held: as long as proxies wait for one.
    private static let longestHold: Int32 = 30
    /// Milliseconds for which a peer may acknowledge nothing.
    private static let patience: UInt32 = 30_000

    init(loop: EventLoop) {
        self.loop = loop
    }

    var count: Int { open.count }

    /// Begins the answer to the request that the peer has in hand.
    ///
    /// - Returns: why it does not.
    func begin(_ answer: StreamingAnswer, to peer: HTTPPeer) -> HTTPResponse? {
        let client: Admission.Client
        switch loop.admission.count(answer.claims, by: peer.transport, peer.call?.forwarded, isCounted: peer.isCounted)
        {
        case .refused(let denial):
            loop.note(denial)
            answer.source.refused(answer.exchange)
            return denial.response
        case .admitted(let admitted): client = admitted
        }
        guard let hold = loop.limits.requests.enter(answer.claims) else {
            loop.admission.abandon(client)
            loop.counters.overShare += 1
            answer.source.refused(answer.exchange)
            return HeldRequests.refusal.readableAnywhere
        }
        let slot = loop.slots.take()
        loop.counters.accepted += 1
        let isChunked = !peer.connection.isHTTP10
        var socket = Socket(wsi: nil, fd: peer.fd, tunnel: peer.tunnel?.pointer, lastHeard: loop.second)
        socket.isHeld = true
        socket.isBlocked = true
        loop.delivery.open(
            slot, socket, SocketAccount(peer: client.peer, second: loop.second, serial: loop.counters.accepted))
        open[slot] = Answer(
            peer: peer, source: answer.source, client: client, hold: hold, isChunked: isChunked,
            held: (answer.head, peer.call?.origin))
        peer.slot = slot
        loop.noteConnections()
        var patience = Self.patience
        setsockopt(
            peer.transport, Int32(IPPROTO_TCP), TCP_USER_TIMEOUT, &patience, socklen_t(MemoryLayout<UInt32>.size))
        if !answer.isHeld { begin(slot, with: nil) }
        answer.source.began(answer.exchange, slot, isChunked: isChunked)
        return nil
    }

    /// Begins an answer that was held.
    ///
    /// - Parameter frame: goes before all that was sent to its slot meanwhile.
    func begin(_ slot: Slot, with frame: Frame?) {
        guard let answer = open[slot], let held = answer.held else { return }
        open[slot]?.held = nil
        let peer = answer.peer
        var (bytes, _) = peer.connection.stream(loop.router.readable(held.head, by: held.origin, isOps: peer.isOps))
        peer.call = nil
        if let frame { bytes += frame.bytes }
        loop.delivery.release(slot, Frame(raw: bytes))
    }

    /// Answers the request of an answer that was held with something else, at the end of the turn.
    func refuse(_ slot: Slot, with response: HTTPResponse) { refused.append((slot, response)) }

    /// Ends an answer behind what is pending for it, so that its client knows that this was all.
    func end(_ slot: Slot) {
        guard let answer = open[slot] else { return }
        guard answer.held == nil else { return refuse(slot, with: .error(503, Refusal.restarting.message)) }
        if let frame = answer.source.farewell(slot) { loop.delivery.send(frame, to: slot) }
        loop.delivery.endAnswer(slot, answer.isChunked ? .lastChunk : nil)
    }

    /// At the end of a turn: answers that are out, that wait for room, or whose connections are to be broken.
    func settle() {
        for (slot, response) in refused.drained() {
            guard let answer = open[slot], let held = answer.held else { continue }
            forget(slot)
            loop.http.answerHeld(answer.peer, response, to: held.origin)
        }
        while !loop.delivery.answers.isEmpty {
            var news = AnswerNews()
            swap(&news, &loop.delivery.answers)
            for slot in news.cut { if let answer = open[slot] { loop.http.cut(answer.peer) } }
            for slot in news.ended { finish(slot) }
            for slot in news.blocked { if let answer = open[slot] { loop.http.awaitRoom(answer.peer) } }
        }
    }

    private func finish(_ slot: Slot) {
        guard let answer = open[slot], loop.delivery.sockets[Int(slot)].isClosing, loop.delivery.pending.isEmpty(slot)
        else { return }
        forget(slot)
        loop.http.ended(answer.peer)
    }

    /// The connection is gone, or is another answer's from here on.
    func forget(_ slot: Slot) {
        guard let answer = open.removeValue(forKey: slot) else { return }
        answer.peer.slot = nil
        answer.source.ended(slot)
        loop.delivery.tracer.forget(slot)
        loop.delivery.close(slot)
        loop.admission.abandon(answer.client)
        loop.limits.requests.leave(answer.hold)
        loop.slots.release(slot)
        loop.noteConnections()
    }

    /// What waited for room in a socket's list may go on.
    func hasRoom(_ slot: Slot) { open[slot]?.source.hasRoom(slot) }

    /// Once a second, for an answer: says something where nothing was said for a while.
    func tick(_ slot: Slot) {
        let account = loop.delivery.accounts[Int(slot)]
        guard open[slot]?.held == nil else {
            guard loop.second - account.openedAt >= Self.longestHold else { return }
            return refuse(slot, with: .error(503, Refusal.databaseUnavailable.message))
        }
        if account.bytesOut != account.bytesSeen {
            loop.delivery.accounts[Int(slot)].bytesSeen = account.bytesOut
            loop.delivery.sockets[Int(slot)].lastHeard = loop.second
        } else if loop.second - loop.delivery.sockets[Int(slot)].lastHeard >= Self.heartbeat,
            loop.delivery.pending.isEmpty(slot), let answer = open[slot]
        {
            answer.source.heartbeat(slot, isChunked: answer.isChunked)
        }
    }
}

extension [(slot: Slot, response: HTTPResponse)] {
    fileprivate mutating func drained() -> Self {
        defer { self = [] }
        return self
    }
}

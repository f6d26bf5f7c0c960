import CWebSockets
import Glibc
import HTTP
import Hub
import Wire

/// An HTTP answer with a streaming body: events for clients that cannot use a WebSocket.
struct StreamingAnswer {
    /// Status, type and fields; it has no body.
    var head: HTTPResponse
    let claims: Claims
    /// Identifies the request, for `source`.
    let exchange: Int
    let source: any StreamingSource
    /// Nothing is sent until the source provides the beginning, or refuses (`StreamingAnswers.begin`, `refuse`).
    var isHeld = false
}

/// A feature with streaming answers. Called on the loop's thread.
protocol StreamingSource: AnyObject {
    /// Called when frames may be sent to the slot, including the first one.
    ///
    /// - Parameter isChunked: to be passed to `Frame(body:isChunked:)` for each frame.
    func began(_ exchange: Int, _ slot: Slot, isChunked: Bool)
    /// Called if the answer does not begin: there are too many already, or its client is gone.
    func refused(_ exchange: Int)
    /// Called when the answer is complete, or its reader gone.
    func ended(_ slot: Slot)
    /// Called after `Delivery.awaitRoom` when nearly all pending bytes were taken.
    func hasRoom(_ slot: Slot)
    /// Called after a while without output.
    func heartbeat(_ slot: Slot, isChunked: Bool)
    /// The last frame before an end that the hub chose.
    func farewell(_ slot: Slot) -> Frame?
}

/// The streaming answers of a loop. Each has a slot among the sockets, so that their frames are shared and written like
/// those of WebSockets, with the same limits for slow readers.
///
/// Reading never stops, so that the end of the input reveals a client's end at once. If a client's machine is gone, the
/// connection ends after 30 seconds without acknowledgement (`TCP_USER_TIMEOUT`); a heartbeat goes out every 15.
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
        /// The head, and the requesting page's origin, while nothing is sent.
        var held: (head: HTTPResponse, origin: String?)?
    }

    /// Seconds of silence before a heartbeat: less than any proxy's timeout.
    private static let heartbeat: Int32 = 15
    /// Seconds for which an answer may be held: as long as proxies wait for a response.
    private static let longestHold: Int32 = 30
    /// Milliseconds for which a peer may acknowledge nothing.
    private static let patience: UInt32 = 30_000

    init(loop: EventLoop) {
        self.loop = loop
    }

    var count: Int { open.count }

    /// Begins a streaming answer to the peer's current request.
    ///
    /// - Returns: the refusal, if it does not begin.
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
    /// - Parameter frame: goes before everything that was sent to the slot meanwhile.
    func begin(_ slot: Slot, with frame: Frame?) {
        guard let answer = open[slot], let held = answer.held else { return }
        open[slot]?.held = nil
        let peer = answer.peer
        var (bytes, _) = peer.connection.stream(loop.router.readable(held.head, by: held.origin, isOps: peer.isOps))
        peer.call = nil
        if let frame { bytes += frame.bytes }
        loop.delivery.release(slot, Frame(raw: bytes))
    }

    /// Replaces a held answer with another response, at the end of the turn.
    func refuse(_ slot: Slot, with response: HTTPResponse) { refused.append((slot, response)) }

    /// Ends an answer after its pending frames, with a proper end of the body.
    func end(_ slot: Slot) {
        guard let answer = open[slot] else { return }
        guard answer.held == nil else { return refuse(slot, with: .error(503, Refusal.restarting.message)) }
        if let frame = answer.source.farewell(slot) { loop.delivery.send(frame, to: slot) }
        loop.delivery.endAnswer(slot, answer.isChunked ? .lastChunk : nil)
    }

    /// Called at the end of a turn: handles answers that are complete, wait for room, or must be broken off.
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

    /// Forgets an answer whose connection is gone, or free for the next request.
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

    /// Continues output that waited for room in a socket's list.
    func hasRoom(_ slot: Slot) { open[slot]?.source.hasRoom(slot) }

    /// Called once a second for an answer: sends a heartbeat after a silence.
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

import CWebSockets
import DequeModule
import Glibc
import HTTP
import Hub
import Wire

/// The HTTP connections of a loop: reads requests, has them judged and answered, and hands those that become WebSockets
/// to libwebsockets.
///
/// Confined to its loop. Connections need no timers of their own, because all are checked once a second. A silent
/// connection costs its entry and libuv's; bytes are stored only while a head or a body is incomplete.
final class HTTPServer {
    /// Owns this server. Reference counting would cost about 0.2 µs of a short request.
    private unowned(unsafe) let loop: EventLoop
    private let router: RequestRouter
    private var peers: [HTTPPeer] = []
    /// Connections whose answers come later, by exchange.
    private var awaiting: [Int: HTTPPeer] = [:]
    /// Readable connections that wait for their turn, in the order of their events.
    private var waiting: Deque<HTTPPeer> = []
    private var readsOfTurn = 0
    /// The most connections read in one turn of the loop. WebSocket output is sent at the end of a turn, so it waits
    /// for no more requests than this, however many arrive at once.
    private static let mostReads = 4
    /// Shared by all reads: bytes not used up in their turn are copied.
    private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 65_536, alignment: 16)
    private static var nothing: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: nil, count: 0) }

    init(loop: EventLoop, router: RequestRouter) {
        self.loop = loop
        self.router = router
    }

    private var limits: HTTPConnection.Limits {
        var limits = HTTPConnection.Limits()
        limits.bodyBytes = loop.configuration.maximumBodyBytes
        limits.bodySeconds = loop.rules.bodyTimeout
        return limits
    }

    /// Takes over a connection. Input that is already there is read at once, without a round through the loop.
    ///
    /// - Parameters:
    ///   - arrival: nil on the operator's port.
    ///   - tunnel: the tunnel whose plain end is `fd`.
    func accept(_ fd: Int32, _ arrival: Arrival?, by tunnel: TLSTunnel? = nil) {
        loop.counters.turnBegins()
        let peer = HTTPPeer(
            fd: fd, by: tunnel, arrival, HTTPConnection(limits: limits, at: loop.second), loop: loop,
            place: peers.count)
        peers.append(peer)
        readInTurn(peer)
    }

    // MARK: Events

    /// Handles libuv's report that the socket is readable or writable.
    ///
    /// - Parameter status: negative if the socket is broken.
    func happened(_ events: Int32, _ status: Int32, to peer: HTTPPeer) {
        loop.counters.turnBegins()
        guard status >= 0 else { return close(peer) }
        if events & Int32(UV_WRITABLE.rawValue) != 0 {
            if let slot = peer.slot { loop.delivery.writable(slot) }
            run(peer, Self.nothing)
        }
        if events & Int32(UV_READABLE.rawValue) != 0, peer.isOpen { readInTurn(peer) }
    }

    /// Whether readable connections are still unread.
    var isBehind: Bool { !waiting.isEmpty }

    private func readInTurn(_ peer: HTTPPeer) {
        guard isBehind || readsOfTurn >= Self.mostReads else {
            readsOfTurn += 1
            return read(peer)
        }
        guard !peer.isWaiting else { return }
        peer.awaitTurn()
        waiting.append(peer)
    }

    /// Begins the next turn with the connections that have waited longest.
    func beginTurn() {
        readsOfTurn = 0
        while readsOfTurn < Self.mostReads, let peer = waiting.popFirst() {
            peer.isWaiting = false
            guard peer.isOpen else { continue }
            loop.counters.turnBegins()
            readsOfTurn += 1
            read(peer)
        }
    }

    private func read(_ peer: HTTPPeer) {
        let count = recv(peer.fd, buffer.baseAddress, buffer.count, Int32(MSG_DONTWAIT))
        if count > 0 {
            run(peer, UnsafeRawBufferPointer(rebasing: buffer[..<count]))
        } else if count < 0, errno == EAGAIN || errno == EINTR {
            listen(peer)
        } else {
            close(peer)
        }
    }

    private func listen(_ peer: HTTPPeer) {
        guard peer.isOpen else { return }
        if !peer.listen() { close(peer) }
    }

    /// Carries out the connection's steps until it needs input or an answer.
    private func run(_ peer: HTTPPeer, _ bytes: UnsafeRawBufferPointer) {
        guard peer.isOpen else { return }
        var input = bytes
        while true {
            switch peer.connection.advance(&input, at: loop.second) {
            case .wait:
                if peer.connection.hasOutput {
                    guard peer.flush(at: loop.second) else { return close(peer) }
                    if !peer.connection.hasOutput { continue }
                }
                if !peer.account(to: loop.limits.unfinished), peer.connection.shed() {
                    loop.counters.unfinishedRefused += 1
                    continue
                }
                return listen(peer)
            case .judge(let head):
                judge(head, of: peer, &input)
            case .piece(let bytes): router.take(bytes, exchange: peer.exchange)
            case .perform(let body) where peer.exchange != 0: router.end(body, exchange: peer.exchange)
            case .perform(let body):
                perform(body, of: peer)
            case .refuse(let response):
                forgetExchange(of: peer)
                answer(response, to: peer.call?.origin, of: peer, closes: true)
            case .shutDown:
                shutdown(peer.fd, Int32(SHUT_WR))
            case .close:
                return close(peer)
            }
            guard peer.isOpen else { return }
        }
    }

    private func judge(_ head: HTTPHead, of peer: HTTPPeer, _ input: inout UnsafeRawBufferPointer) {
        if let denial = peer.requestBegins(head) {
            return answer(denial.response, to: head.field("origin"), of: peer, closes: true)
        }
        if WebSocketHandshake.isAsked(by: head) { return upgrade(head, of: peer, input) }
        if let refusal = router.refusal(of: head, isOps: peer.isOps) {
            logRefusal(refusal, of: peer, TraceContext(head), forwarded: head.field("x-forwarded-for"))
            return answer(
                refusal, to: head.field("origin"), of: peer,
                closes: refusal.status >= 500 || head.method == "CONNECT")
        }
        switch router.judge(head, isOps: peer.isOps) {
        case .answered(let response):
            if response.status >= 400 {
                logRefusal(response, of: peer, TraceContext(head), forwarded: head.field("x-forwarded-for"))
            }
            answer(response, to: head.field("origin"), of: peer)
        case .admitted(let call) where call.needsBody && head.body == .none:
            answer(HTTPResponse.error(411, "Content-Length is missing"), to: call.origin, of: peer)
        case .admitted(let call) where call.inPieces:
            peer.call = call
            peer.connection.admit(input, inPieces: true, at: loop.second)
            peer.exchange = router.nextExchange()
            awaiting[peer.exchange] = peer
            router.begin(call, exchange: peer.exchange)
        case .admitted(let call):
            peer.call = call
            peer.connection.admit(input, at: loop.second)
        }
    }

    private func perform(_ body: [UInt8], of peer: HTTPPeer) {
        guard var call = peer.call.take() else { return }
        _ = peer.account(to: loop.limits.unfinished)
        call.body = body
        let exchange = router.nextExchange()
        peer.call = call
        switch router.perform(call, exchange: exchange, by: peer.transport) {
        case .answered(let response): answer(response, to: call.origin, of: peer)
        case .streams(let answer): stream(answer, to: peer)
        case .later:
            peer.exchange = exchange
            awaiting[exchange] = peer
        }
    }

    private func stream(_ answer: StreamingAnswer, to peer: HTTPPeer) {
        guard let refusal = loop.answers.begin(answer, to: peer) else { return }
        self.answer(refusal, to: peer.call?.origin, of: peer)
    }

    /// - Parameter origin: of the requesting page; nil if the client is not a page, or if the origin is unknown.
    private func answer(_ response: HTTPResponse, to origin: String?, of peer: HTTPPeer, closes: Bool = false) {
        guard response.status != 503 || peer.call?.isEventSource != true else { return close(peer) }
        if let call = peer.call, response.status >= 400 {
            logRefusal(response, of: peer, call.trace, forwarded: call.forwarded)
        }
        peer.call = nil
        peer.requestEnds(closes: closes)
        peer.connection.answer(
            router.readable(response, by: origin, isOps: peer.isOps), closes: closes, at: loop.second)
    }

    /// Logs why a call was refused, with its client's trace context. A 404 is not a refusal.
    private func logRefusal(_ response: HTTPResponse, of peer: HTTPPeer, _ trace: TraceContext?, forwarded: String?) {
        guard !peer.isOps, response.status != 404 else { return }
        loop.denials.tell(
            "A call was refused", reason: "http_\(response.status)", why: response.sentence,
            of: loop.admission.fullAddress(by: peer.transport, forwarded), at: loop.second, loop.logger, trace: trace)
    }

    /// Delivers a late answer to its connection; false if none waits for it any more.
    func reply(_ exchange: Int, _ outcome: HTTPOutcome) -> Bool {
        guard let peer = awaiting.removeValue(forKey: exchange), let call = peer.call else { return false }
        peer.exchange = 0
        switch outcome {
        case .answered(let response): answer(response, to: call.origin, of: peer)
        case .streams(let answer): stream(answer, to: peer)
        case .later: break
        }
        run(peer, Self.nothing)
        return true
    }

    /// Resumes reading a body that is passed on as it arrives.
    func goOn(_ exchange: Int) {
        guard let peer = awaiting[exchange] else { return }
        peer.connection.goOn()
        run(peer, Self.nothing)
    }

    // MARK: Streaming answers

    /// Ends a streaming answer that was sent completely; the next request follows, or the end of the connection.
    func ended(_ peer: HTTPPeer) {
        peer.requestEnds(closes: false)
        peer.connection.endStream(at: loop.second)
        run(peer, Self.nothing)
    }

    /// Sends another response in place of a streaming answer that does not begin.
    func answerHeld(_ peer: HTTPPeer, _ response: HTTPResponse, to origin: String?) {
        answer(response, to: origin, of: peer)
        run(peer, Self.nothing)
    }

    /// Watches for room in the socket.
    func awaitRoom(_ peer: HTTPPeer) { listen(peer) }

    /// Breaks the connection in the middle of an answer, so that the client sees an error and reconnects.
    func cut(_ peer: HTTPPeer) { close(peer) }

    // MARK: Upgrades

    private func upgrade(_ head: HTTPHead, of peer: HTTPPeer, _ input: UnsafeRawBufferPointer) {
        switch loop.judgeUpgrade(head, of: peer) {
        case .refused(let response):
            answer(response, to: head.field("origin"), of: peer, closes: true)
        case .admitted(let upgrade):
            let bytes =
                WebSocketHandshake.canonicalHead(key: head.field("sec-websocket-key") ?? "")
                + peer.connection.takeRest(input)
            _ = peer.account(to: loop.limits.unfinished)
            forget(peer)
            loop.handOver(peer.fd, bytes, upgrade)
        }
    }

    // MARK: Ends

    /// Called once a second: ends whatever takes too long.
    func tick() {
        // In reverse, because the last peer moves to the place of a removed one.
        for place in peers.indices.reversed() where place < peers.count {
            let peer = peers[place]
            if peer.connection.expire(at: loop.second) { run(peer, Self.nothing) }
        }
    }

    /// Prepares for the hub's end: closes idle connections, and lets others close after their answer. The operator's
    /// port stays.
    func drain() {
        for place in peers.indices.reversed() where place < peers.count && !peers[place].isOps {
            if peers[place].hasNothingToDo { close(peers[place]) } else { peers[place].connection.isLast = true }
        }
    }

    // MARK: Room for others

    /// Clients' connections that are neither WebSockets nor streaming answers.
    var requestCount: Int { peers.count { !$0.isOps && $0.slot == nil } }

    /// Ends connections, because descriptors run short, for a newly accepted one or for those of another loop.
    ///
    /// - Returns: false if the new connection must go instead.
    func makeRoom(for newcomer: PeerAddress?) -> Bool {
        let candidates = peers.filter { !$0.isOps && $0.slot == nil }
        let chosen = Displacement.choose(
            among: candidates.enumerated().map { place, peer in
                Displacement.Candidate(
                    place: place, source: peer.arrival?.source, isIdle: peer.isIdle, since: peer.since)
            }, for: newcomer)
        for place in chosen { close(candidates[place]) }
        loop.counters.displaced += chosen.count
        return !chosen.isEmpty
    }

    /// Ends the oldest idle connection of an address that has reached its limit, to make room for its next one.
    ///
    /// - Returns: whether there was one here.
    func endIdle(of address: PeerAddress) -> Bool {
        let idle = peers.filter { $0.arrival?.counted == address && $0.isIdle }
        guard let eldest = idle.min(by: { $0.since < $1.since }) else { return false }
        close(eldest)
        loop.counters.displaced += 1
        return true
    }

    private func close(_ peer: HTTPPeer) {
        forget(peer)
        Glibc.close(peer.fd)
    }

    private func forgetExchange(of peer: HTTPPeer) {
        guard peer.exchange != 0 else { return }
        let exchange = peer.exchange
        peer.exchange = 0
        awaiting[exchange] = nil
        router.abandoned(exchange)
    }

    /// Forgets a connection whose socket was handed over, or will be closed.
    private func forget(_ peer: HTTPPeer) {
        guard peer.isOpen else { return }
        if let slot = peer.slot { loop.answers.forget(slot) }
        peer.stop(loop.limits.unfinished)
        forgetExchange(of: peer)
        let last = peers.removeLast()
        guard last !== peer else { return }
        peers[peer.place] = last
        last.place = peer.place
    }
}

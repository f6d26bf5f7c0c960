import CWebSockets
import DequeModule
import Glibc
import HTTP
import Hub
import Wire

/// The HTTP connections of a loop: reads what comes by them, has it judged and answered, and hands those that become WebSockets to
/// libwebsockets.
///
/// Confined to its loop. A connection costs no timer: once a second all are looked at. A connection that is silent costs its
/// entry and libuv's; bytes are held while a head or a body is not complete.
final class HTTPServer {
    /// Owns this server. Counting who holds it costs some 0.2 µs of a short request.
    private unowned(unsafe) let loop: EventLoop
    private let router: RequestRouter
    private var peers: [HTTPPeer] = []
    /// Those whose answer comes later, by exchange.
    private var awaiting: [Int: HTTPPeer] = [:]
    /// Those that can be read and wait for their turn, in the order in which that was noticed.
    private var waiting: Deque<HTTPPeer> = []
    private var readsOfTurn = 0
    /// How many connections are read in a turn of the loop. What WebSockets send is delivered at a turn's end, and so waits for no more
    /// requests than these, however many come at once.
    private static let mostReads = 4
    /// Every read goes through here: what is not used up in its turn is copied.
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

    /// Takes a connection over. What it sent may be there already, and then it costs no round through the loop.
    ///
    /// - Parameters:
    ///   - arrival: nil on the operator's port.
    ///   - tunnel: of which `fd` is the plain end.
    func accept(_ fd: Int32, _ arrival: Arrival?, by tunnel: TLSTunnel? = nil) {
        loop.counters.turnBegins()
        let peer = HTTPPeer(
            fd: fd, by: tunnel, arrival, HTTPConnection(limits: limits, at: loop.second), loop: loop,
            place: peers.count)
        peers.append(peer)
        readInTurn(peer)
    }

    // MARK: Events

    /// libuv says that the socket can be read or written.
    ///
    /// - Parameter status: negative where the socket is broken.
    func happened(_ events: Int32, _ status: Int32, to peer: HTTPPeer) {
        loop.counters.turnBegins()
        guard status >= 0 else { return close(peer) }
        if events & Int32(UV_WRITABLE.rawValue) != 0 {
            if let slot = peer.slot { loop.delivery.writable(slot) }
            run(peer, Self.nothing)
        }
        if events & Int32(UV_READABLE.rawValue) != 0, peer.isOpen { readInTurn(peer) }
    }

    /// Whether some can be read and are not.
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

    /// A turn has ended, and the next one begins with those that wait longest.
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

    /// Does what is to be done until the client or an answer has to come.
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

    /// - Parameter origin: of the page that asks; nil for what is no page, and where nobody knows.
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

    /// Tells the operator why a call was refused, and by what name its client knows it. What is not served is no refusal.
    private func logRefusal(_ response: HTTPResponse, of peer: HTTPPeer, _ trace: TraceContext?, forwarded: String?) {
        guard !peer.isOps, response.status != 404 else { return }
        loop.denials.tell(
            "A call was refused", reason: "http_\(response.status)", why: response.sentence,
            of: loop.admission.fullAddress(by: peer.transport, forwarded), at: loop.second, loop.logger, trace: trace)
    }

    /// The answer to a request that was answered later; false where nobody here waits for it any more.
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

    /// More of a body that is taken as it comes may be read.
    func goOn(_ exchange: Int) {
        guard let peer = awaiting[exchange] else { return }
        peer.connection.goOn()
        run(peer, Self.nothing)
    }

    // MARK: Answers that go on

    /// The answer is out whole: the next request, or the end of the connection.
    func ended(_ peer: HTTPPeer) {
        peer.requestEnds(closes: false)
        peer.connection.endStream(at: loop.second)
        run(peer, Self.nothing)
    }

    /// It does not begin: another answer takes its place.
    func answerHeld(_ peer: HTTPPeer, _ response: HTTPResponse, to origin: String?) {
        answer(response, to: origin, of: peer)
        run(peer, Self.nothing)
    }

    /// libuv is to say when the socket takes more.
    func awaitRoom(_ peer: HTTPPeer) { listen(peer) }

    /// Without an end of the answer: its client takes it for broken, and comes back.
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

    /// Once a second: ends what takes too long.
    func tick() {
        // From the end, because one that is forgotten leaves its place to the last.
        for place in peers.indices.reversed() where place < peers.count {
            let peer = peers[place]
            if peer.connection.expire(at: loop.second) { run(peer, Self.nothing) }
        }
    }

    /// The hub is about to end: what is idle is closed, and what is not after its answer. The operator's port stays.
    func drain() {
        for place in peers.indices.reversed() where place < peers.count && !peers[place].isOps {
            if peers[place].hasNothingToDo { close(peers[place]) } else { peers[place].connection.isLast = true }
        }
    }

    // MARK: Room for others

    /// Those that are no WebSocket and no answer that goes on.
    var requestCount: Int { peers.count { !$0.isOps && $0.slot == nil } }

    /// Descriptors run short: ends connections for one that was accepted, or for those of another loop.
    ///
    /// - Returns: false where the new one is the one to go.
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

    /// An address has all the connections that it may: its eldest idle one makes room for its next.
    ///
    /// - Returns: whether it has one here.
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

    /// The socket is another's from here on, or closed.
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

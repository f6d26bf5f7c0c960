import CCurl
import Glibc
import Logging
import Streams
import Webhooks
import Wire
import Workers

/// The requests under way. Confined to the service's thread.
final class ForwardWorker {
    private let setup: ForwardService.Setup
    private let streams: any StreamService
    private unowned let service: ForwardService
    private let published: Published<ForwardService.Statistics>
    private let logger: Logger
    private var log: RateLimitedLog
    private var set: OpaquePointer?
    private var mailbox: WorkerMailbox<ForwardService.Mail>?
    private var exchanges: [UInt64: ForwardExchange] = [:]
    private var generations: [StreamID: UInt64] = [:]
    /// Exchanges that libcurl reported during its own work, when its set must not be touched.
    private var touched: Set<UInt64> = []
    /// Exchanges whose stream could not be reached, to be retried.
    private var retrying: Set<UInt64> = []
    private var lastID: UInt64 = 0
    private var figures = ForwardService.Statistics()
    private var sweepAt = ContinuousClock.now

    private static let connectMilliseconds = 5000
    /// How long an answer that has begun may be silent: models think for a long time.
    private static let silenceSeconds = 300
    private static let sweepInterval = Duration.milliseconds(100)

    init?(
        _ setup: ForwardService.Setup, _ streams: any StreamService, _ service: ForwardService,
        _ published: Published<ForwardService.Statistics>, _ logger: Logger
    ) {
        self.setup = setup
        self.streams = streams
        self.service = service
        self.published = published
        self.logger = logger
        log = RateLimitedLog(logger: logger)
        let calls = roost_forward_calls(
            context: Unmanaged.passUnretained(self).toOpaque(),
            head: { context, id, status in ForwardWorker.fromContext(context)?.answerBegan(id, status) },
            piece: { context, id, status, type, bytes, count in
                let piece = UnsafeBufferPointer(start: bytes, count: count)
                let type = type.map { String(cString: $0) } ?? ""
                return ForwardWorker.fromContext(context)?.takePiece(piece, of: id, status, type) == false ? 0 : 1
            },
            done: { context, id, status, _, problem in
                ForwardWorker.fromContext(context)?.answerEnded(id, status, problem.map { String(cString: $0) })
            })
        guard let set = roost_forwards_create(calls) else {
            logger.error("Requests cannot be passed on (streams.routes): libcurl could not start")
            return nil
        }
        self.set = set
    }

    deinit { roost_forwards_destroy(set) }

    private static func fromContext(_ context: UnsafeMutableRawPointer?) -> ForwardWorker? {
        context.map { Unmanaged<ForwardWorker>.fromOpaque($0).takeUnretainedValue() }
    }

    // MARK: Turns

    func runUntilStopped(_ mailbox: WorkerMailbox<ForwardService.Mail>) {
        self.mailbox = mailbox
        var isStopping = false
        while !isStopping || !exchanges.isEmpty {
            // Work done here may wait for libcurl's next turn.
            roost_forwards_wait(set, mailbox.descriptor, exchanges.isEmpty ? 60_000 : 100)
            let mail = mailbox.takeMail { mail in
                defer { mail = ForwardService.Mail(isStopping: mail.isStopping) }
                return mail
            }
            for forward in mail.forwards {
                startExchange(forward)
                if isStopping { failExchange(lastID, .restarting) }
            }
            for (id, answer) in mail.answers { handleAnswer(answer, id) }
            for generation in mail.ended { if let id = generations[generation] { removeExchange(id) } }
            if mail.isStopping, !isStopping {
                isStopping = true
                for id in exchanges.keys { failExchange(id, .restarting) }
            }
            continueExchanges()
            if sweepAt <= .now { failLate() }
            publishStatistics()
        }
    }

    private func publishStatistics() {
        figures.underWay = exchanges.count
        published.value = figures
    }

    private func failLate() {
        sweepAt = .now + Self.sweepInterval
        for (id, exchange) in exchanges where exchange.isLate(at: .now) { failExchange(id, .timeout) }
        continueExchanges()
    }

    private func startExchange(_ forward: StreamForward) {
        lastID += 1
        let id = lastID
        exchanges[id] = ForwardExchange(forward, deadline: .now + setup.patience, mostOfMessage: setup.limits.message)
        generations[forward.generation] = id
        figures.passedOn += 1
        streams.watchStream(forward.name, by: ForwardService.watcher)
        streams.submitRequest(.hold(StreamHold(forward: id)), on: forward.name) { _ in }
        let texts =
            (forward.headers
            + ForwardSignature.headers(
                of: forward, by: setup.secret, at: Int64(time(nil)))).map { strdup($0) }
        defer { for text in texts { free(text) } }
        let pointers: [UnsafePointer<CChar>?] = texts.map { UnsafePointer($0) }
        let isBegun = roost_forwards_begin(
            set, id, forward.url, pointers, pointers.count, forward.body, forward.body.count, Self.connectMilliseconds,
            Self.silenceSeconds)
        if isBegun == 0 { failExchange(id, .unreachable) }
    }

    // MARK: Events of libcurl

    private func answerBegan(_ id: UInt64, _ status: Int) { exchanges[id]?.answerBegan(status) }

    private func takePiece(_ piece: UnsafeBufferPointer<UInt8>, of id: UInt64, _ status: Int, _ type: String) -> Bool {
        guard exchanges[id] != nil else { return true }
        touched.insert(id)
        return exchanges[id]?.takePiece(piece, status, type) ?? true
    }

    private func answerEnded(_ id: UInt64, _ status: Int, _ problem: String?) {
        touched.insert(id)
        exchanges[id]?.answerEnded(status, problem)
        if let problem { log.logWarning("A backend's answer to a request that was passed on broke off: \(problem)") }
    }

    // MARK: Answers of streams

    private func handleAnswer(_ answer: StreamAnswer, _ id: UInt64) {
        guard let exchange = exchanges[id] else { return }
        switch exchange.handleAnswer(answer, at: .now) {
        case .goOn:
            if exchange.waits { retrying.insert(id) } else { touched.insert(id) }
            if exchange.resumeIfPaused() { roost_forwards_resume(set, id) }
        case .fails(let failure): failExchange(id, failure)
        case .over: removeExchange(id)
        }
    }

    private func continueExchanges() {
        while let id = touched.popFirst() {
            guard let exchange = exchanges[id] else { continue }
            if let failure = exchange.failure, !exchange.isFailing { failExchange(id, failure) }
            submitNext(exchange, id)
        }
        for id in retrying {
            guard let exchange = exchanges[id] else {
                retrying.remove(id)
                continue
            }
            guard exchange.isDue(at: .now) else { continue }
            retrying.remove(id)
            submitNext(exchange, id)
        }
    }

    private func submitNext(_ exchange: ForwardExchange, _ id: UInt64) {
        guard let request = exchange.nextRequest(at: .now) else {
            if exchange.isOver { removeExchange(id) }
            return
        }
        streams.submitRequest(request, on: exchange.forward.name) { [mailbox] answer in
            mailbox?.post { $0.answers.append((id, answer)) }
        }
    }

    private func failExchange(_ id: UInt64, _ failure: ForwardFailure) {
        guard let exchange = exchanges[id], !exchange.isFailing else { return }
        figures.failed[failure, default: 0] += 1
        roost_forwards_cancel(set, id)
        exchange.fail(saying: exchange.ownError ?? Self.errorEvent(setup.errorEvent, failure))
        submitNext(exchange, id)
    }

    private static func errorEvent(_ template: String, _ failure: ForwardFailure) -> [UInt8] {
        let parts = template.utf8.split(separator: "$reason".utf8)
        return Array(parts.joined(separator: failure.rawValue.utf8))
    }

    private func removeExchange(_ id: UInt64) {
        guard let exchange = exchanges.removeValue(forKey: id) else { return }
        roost_forwards_cancel(set, id)
        if generations[exchange.forward.generation] == id { generations[exchange.forward.generation] = nil }
        streams.submitRequest(.release(StreamHold(forward: id), isFault: false), on: exchange.forward.name) { _ in }
        streams.unwatchStream(exchange.forward.name, by: ForwardService.watcher)
        service.returnRoom(for: exchange.forward.owner)
    }
}

extension StreamHold {
    /// No loop has this number.
    fileprivate init(forward id: UInt64) { self.init(loop: -1, serial: -Int(id)) }
}

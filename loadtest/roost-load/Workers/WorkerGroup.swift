import CLoad
import FoundationEssentials
import Glibc

/// What the parent sends to a worker.
enum ParentMessage: Codable, Sendable {
    case plan(LoadPlan, worker: Int)
    case connect
    case start(Timing)
    /// Asks for a report.
    case report
    case stop
    /// Wait for what is still under way, for so many seconds at most; with the channel sums of all workers.
    case settle(channelSums: [UInt64], seconds: Double)
    case quit
}

/// What a worker sends to the parent.
enum WorkerMessage: Codable, Sendable {
    /// Ready to connect.
    case prepared
    /// Every socket has joined or was refused.
    case connected
    case report(WorkerReport)
    /// Nothing more is to be done.
    case finished
    case stopped(channelSums: [UInt64])
    case result(WorkerResult)
    /// It cannot go on: one sentence.
    case failed(String)
}

/// All workers of a run, and the keyboard's Ctrl-C.
final class WorkerGroup {
    enum Event {
        case message(WorkerMessage, worker: Int)
        case interrupt
        /// The moment has come that was waited for.
        case time
    }
    private let members: [WorkerHandle]
    private let signals: Int32

    init(count: Int) throws {
        var set = sigset_t()
        sigemptyset(&set)
        sigaddset(&set, SIGINT)
        sigaddset(&set, SIGTERM)
        signals = signalfd(-1, &set, Int32(SFD_CLOEXEC))
        guard signals >= 0 else { throw LoadFailure.system("Listening for Ctrl-C") }
        members = try (0..<count).map { _ in try WorkerHandle() }
        // Not before: a worker would inherit it.
        pthread_sigmask(SIG_BLOCK, &set, nil)
    }

    deinit {
        for member in members { member.end() }
        close(signals)
    }

    var count: Int { members.count }

    func send(_ message: ParentMessage) throws { for member in members { try member.link.send(message) } }

    /// - Parameter message: by the worker's index.
    func send(_ message: (Int) -> ParentMessage) throws {
        for (index, member) in members.enumerated() { try member.link.send(message(index)) }
    }

    /// Waits for what happens next, until `moment` at the latest.
    func nextEvent(until moment: UInt64) throws -> Event {
        var polls = members.map { pollfd(fd: $0.link.descriptor, events: Int16(POLLIN), revents: 0) }
        polls.append(pollfd(fd: signals, events: Int16(POLLIN), revents: 0))
        while true {
            let now = MonotonicClock.now
            guard now < moment else { return .time }
            let milliseconds = min(1000, (moment - now) / 1_000_000 + 1)
            guard poll(&polls, nfds_t(polls.count), Int32(milliseconds)) > 0 else { continue }
            if polls[members.count].revents != 0 {
                var information = signalfd_siginfo()
                _ = read(signals, &information, MemoryLayout<signalfd_siginfo>.size)
                return .interrupt
            }
            for (index, member) in members.enumerated() where polls[index].revents != 0 {
                guard let message = try member.link.receive(WorkerMessage.self) else {
                    throw LoadFailure("Worker \(index) has ended unexpectedly; the reason may be above.")
                }
                if case .failed(let sentence) = message { throw LoadFailure(sentence) }
                return .message(message, worker: index)
            }
        }
    }
}

/// A worker as its parent sees it: a copy of this program, and the connection to it.
struct WorkerHandle {
    let process: pid_t
    let link: Link

    init() throws {
        var ends: [Int32] = [-1, -1]
        guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends) == 0 else {
            throw LoadFailure.system("Making a line to a worker")
        }
        defer { close(ends[1]) }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        // Two steps: a descriptor that is in its place already would keep its flag and be closed.
        posix_spawn_file_actions_adddup2(&actions, ends[1], WorkerProcess.descriptor + 1)
        posix_spawn_file_actions_adddup2(&actions, WorkerProcess.descriptor + 1, WorkerProcess.descriptor)
        posix_spawn_file_actions_addclose(&actions, WorkerProcess.descriptor + 1)
        let arguments: [UnsafeMutablePointer<CChar>?] = [strdup("roost-load"), strdup("worker"), nil]
        defer { for argument in arguments { free(argument) } }
        var process: pid_t = 0
        let status = posix_spawn(&process, "/proc/self/exe", &actions, nil, arguments, environ)
        guard status == 0 else {
            close(ends[0])
            throw LoadFailure.system("Starting a worker", status)
        }
        self.process = process
        link = Link(descriptor: ends[0])
    }

    /// Waits until it has ended, which it does of itself unless it hangs in a call.
    func end() {
        close(link.descriptor)
        kill(process, SIGTERM)
        var status: Int32 = 0
        while waitpid(process, &status, 0) < 0, errno == EINTR {}
    }
}

/// One end of the connection between parent and worker: messages as JSON, each behind its length in four bytes.
struct Link {
    let descriptor: Int32

    func send(_ message: some Encodable) throws {
        let body = try JSONEncoder().encode(message)
        var bytes = withUnsafeBytes(of: UInt32(body.count).littleEndian) { Array($0) }
        bytes += body
        var at = 0
        while at < bytes.count {
            let count = bytes[at...].withUnsafeBytes {
                Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 || errno == EINTR else { throw LoadFailure.system("Speaking with the other process") }
            at += max(0, count)
        }
    }

    /// The next message; nil when the other end is closed. Blocks until it is whole.
    func receive<Message: Decodable>(_: Message.Type) throws -> Message? {
        guard let head = try bytes(4) else { return nil }
        let count = head.reversed().reduce(0) { $0 << 8 | Int($1) }
        guard let body = try bytes(count) else { return nil }
        return try JSONDecoder().decode(Message.self, from: Data(body))
    }

    private func bytes(_ count: Int) throws -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: count)
        var at = 0
        while at < count {
            let got = bytes[at...].withUnsafeMutableBytes { recv(descriptor, $0.baseAddress, $0.count, 0) }
            if got == 0 { return nil }
            if got < 0 {
                if errno == EINTR { continue }
                if errno == ECONNRESET { return nil }
                throw LoadFailure.system("Listening to the other process")
            }
            at += got
        }
        return bytes
    }
}

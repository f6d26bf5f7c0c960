import CLoad
import Glibc

/// All workers of a run, and the keyboard's Ctrl-C.
final class Crew {
    enum News {
        case word(Word, worker: Int)
        case interrupt
        /// The moment has come that was waited for.
        case time
    }
    private let members: [CrewMember]
    private let signals: Int32

    init(count: Int) throws {
        var set = sigset_t()
        sigemptyset(&set)
        sigaddset(&set, SIGINT)
        sigaddset(&set, SIGTERM)
        signals = signalfd(-1, &set, Int32(SFD_CLOEXEC))
        guard signals >= 0 else { throw LoadFailure.system("Listening for Ctrl-C") }
        members = try (0..<count).map { _ in try CrewMember() }
        // Not before: a worker would inherit it.
        pthread_sigmask(SIG_BLOCK, &set, nil)
    }

    deinit {
        for member in members { member.dismiss() }
        close(signals)
    }

    var count: Int { members.count }

    func tell(_ order: Order) throws { for member in members { try member.link.send(order) } }

    func tell(_ order: (Int) -> Order) throws {
        for (index, member) in members.enumerated() { try member.link.send(order(index)) }
    }

    /// What happens next, until `moment` at the latest.
    func news(until moment: UInt64) throws -> News {
        var polls = members.map { pollfd(fd: $0.link.descriptor, events: Int16(POLLIN), revents: 0) }
        polls.append(pollfd(fd: signals, events: Int16(POLLIN), revents: 0))
        while true {
            let now = Clock.now
            guard now < moment else { return .time }
            let milliseconds = min(1000, (moment - now) / 1_000_000 + 1)
            guard poll(&polls, nfds_t(polls.count), Int32(milliseconds)) > 0 else { continue }
            if polls[members.count].revents != 0 {
                var information = signalfd_siginfo()
                _ = read(signals, &information, MemoryLayout<signalfd_siginfo>.size)
                return .interrupt
            }
            for (index, member) in members.enumerated() where polls[index].revents != 0 {
                guard let word = try member.link.receive(Word.self) else {
                    throw LoadFailure("Worker \(index) has ended unexpectedly; the reason may stand above.")
                }
                if case .failed(let sentence) = word { throw LoadFailure(sentence) }
                return .word(word, worker: index)
            }
        }
    }
}

import Glibc

/// One writer's share of the schedule, on a thread of its own.
///
/// A conversation belongs to one writer, so that the order of its rows is the order of their commits. The schedule is
/// open loop: a commit that takes long delays those behind it, and their latency counts from when they were due.
struct Writer: Sendable {
    let index: Int
    let count: Int
    let plan: ChangesPlan
    let conninfo: String
    let insert: String
    let log: CommitLog

    func start() throws {
        let box = Unmanaged.passRetained(Box(self))
        var handle = pthread_t()
        let status = pthread_create(
            &handle, nil,
            { argument in
                guard let argument else { return nil }
                Unmanaged<Box>.fromOpaque(argument).takeRetainedValue().writer.run()
                return nil
            }, box.toOpaque())
        guard status == 0 else {
            box.release()
            throw LoadFailure.system("Starting a writer's thread", status)
        }
        pthread_detach(handle)
    }

    private final class Box {
        let writer: Writer
        init(_ writer: Writer) { self.writer = writer }
    }

    private func run() {
        defer { log.finished() }
        let session: WriterSession
        do { session = try WriterSession(conninfo, insert: insert) } catch let failure as LoadFailure {
            return log.broken(failure)
        } catch {
            return log.broken(LoadFailure("\(error)"))
        }
        log.connected()
        write(session, from: waitForStart())
    }

    private func waitForStart() -> UInt64 {
        while true {
            if let start = log.start { return start }
            usleep(1000)
        }
    }

    private func write(_ session: WriterSession, from start: UInt64) {
        let stamp = Stamp(run: plan.run)
        let uuids = (0..<plan.conversations).map(plan.uuid)
        for tick in 0..<plan.total where plan.conversation(ofTick: tick) % count == index {
            let text = stamp.text(of: tick)
            Clock.sleep(until: start + plan.offset(ofTick: tick))
            do {
                try session.insert(conversation: uuids[plan.conversation(ofTick: tick)], stamp: text)
                log.committed(tick, at: Clock.now)
            } catch {
                log.failed(tick, error as? LoadFailure ?? LoadFailure("\(error)"))
            }
        }
    }
}

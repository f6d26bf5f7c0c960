import Foundation

extension Outbox {
    /// Sends until the task that calls it is cancelled, and returns then, when the last send has ended. Without it,
    /// payloads are stored and wait.
    ///
    /// It may be called again; what was being sent is then sent once more. A call while another one runs waits until that
    /// one has ended, so a view may call it in its `task`.
    ///
    /// - Throws: what the storage throws when it cannot be read.
    public func run() async throws {
        while running != nil {
            let (turn, end) = AsyncStream.makeStream(of: Never.self)
            successors.append(end)
            for await _ in turn {}
            if Task.isCancelled { return }
        }
        try load()
        let (rings, bell) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        running = OutboxRun(bell: bell)
        bell.yield()
        // Ends when this task is cancelled.
        for await _ in rings where !Task.isCancelled { startWhatIsReady() }
        for task in running?.end() ?? [] { await task.value }
        running = nil
        for successor in successors { successor.finish() }
        successors = []
    }

    private func startWhatIsReady() {
        let now = time.now()
        for attempt in begin(at: now) {
            running?.began(attempt, Task { await self.perform(attempt) })
        }
        running?.setAlarm(at: core.queue.opensNext(after: now), time)
    }

    private func perform(_ attempt: OutboxQueue.Attempt) async {
        defer { running?.ended(attempt) }
        guard let stored = core.queue[attempt.localID] else { return }
        let item: OutboxItem<Payload>
        do { item = try self.item(stored) } catch {
            let reason = "this version of the app cannot read it: \(error)"
            return change { $0.fail(attempt, .reject(reason), reason: reason, at: time.now(), random: 0) }
        }
        do {
            try await sendInTime(item)
            change { _ = $0.finish(attempt.localID) }
        } catch {
            // Ended by us: run() ends, or the payload has left the outbox.
            if Task.isCancelled { return change { $0.interrupt(attempt) } }
            let isLate = error as? OutboxError == .timedOut(options.sendTimeout)
            let verdict = isLate ? .retry : classify(error, item)
            change { $0.fail(attempt, verdict, reason: "\(error)", at: time.now(), random: time.random()) }
        }
    }

    private func sendInTime(_ item: OutboxItem<Payload>) async throws {
        let (send, time, limit) = (send, time, options.sendTimeout)
        try await withThrowingTaskGroup(of: Bool.self) { group in
            group.addTask {
                try await send(item)
                return true
            }
            let deadline = time.now() + limit
            group.addTask {
                try await time.sleep(deadline)
                return false
            }
            defer { group.cancelAll() }
            guard try await group.next() != true else { return }
            group.cancelAll()
            do {
                // It may have succeeded in this very moment.
                if try await group.next() == true { return }
            } catch {
                // It has ended as it was told to.
            }
            throw OutboxError.timedOut(limit)
        }
    }
}

import Synchronization
import Testing
import Workers

@Suite struct WorkerThreadTests {
    @Test func itRunsOnceAndIsWaitedFor() {
        let runs = Mutex(0)
        let thread = WorkerThread(named: "roost-test")
        #expect(thread.join(), "nothing runs yet")
        for _ in 0..<2 { thread.start { runs.withLock { $0 += 1 } } }
        #expect(thread.join())
        #expect(thread.join(by: .now))
        thread.start { runs.withLock { $0 += 1 } }
        #expect(runs.withLock { $0 } == 1)
    }

    @Test func whoHangsIsLeftBehind() {
        let release = EventDescriptor()
        let thread = WorkerThread(named: "roost-test")
        thread.start { _ = release.wait(until: nil) }
        #expect(!thread.join(by: .now + .milliseconds(20)))
        release.signal()
        #expect(thread.join())
    }
}

@Suite struct WorkerMailboxTests {
    @Test func itWakesUntilItIsLookedInto() {
        let mailbox = WorkerMailbox<[Int]>([])
        mailbox.post { $0.append(1) }
        mailbox.post { $0.append(2) }
        mailbox.withContent { $0.append(3) }
        mailbox.wait(until: nil)
        let taken = mailbox.takeMail { content in
            defer { content = [] }
            return content
        }
        #expect(taken == [1, 2, 3])
        let begin = ContinuousClock.now
        mailbox.wait(until: begin + .milliseconds(20))
        #expect(ContinuousClock.now - begin >= .milliseconds(20), "nobody wakes it any more")
        mailbox.post { $0.append(4) }
        mailbox.wait(until: nil)
    }

    @Test func nothingIsLostBetweenManyThreads() {
        let mailbox = WorkerMailbox<[Int]>([])
        let count = 2000
        let threads = (0..<4).map { WorkerThread(named: "roost-test-\($0)") }
        for (place, thread) in threads.enumerated() {
            thread.start { for number in 0..<count { mailbox.post { $0.append(place * count + number) } } }
        }
        var seen: [Int] = []
        let limit = ContinuousClock.now + .seconds(30)
        while seen.count < 4 * count, ContinuousClock.now < limit {
            mailbox.wait(until: limit)
            seen += mailbox.takeMail { content in
                defer { content = [] }
                return content
            }
        }
        for thread in threads { thread.join() }
        #expect(seen.sorted() == Array(0..<4 * count))
    }
}

@Suite struct StopSignalTests {
    @Test func theFirstDeadlineCounts() {
        let stop = StopSignal()
        #expect(!stop.isStopping)
        let first = ContinuousClock.now + .seconds(1)
        stop.stop(by: first)
        stop.stop(by: first + .seconds(5))
        #expect(stop.deadline == first)
    }
}

@Suite struct RetryScheduleTests {
    @Test func waitsGrowAndAreResetByStability() {
        var schedule = RetrySchedule()
        let now = ContinuousClock.now
        let waits = (0..<6).map { _ in schedule.attemptFailed(at: now, random: 1) }
        #expect(waits == [1, 2, 4, 8, 15, 15].map { .seconds($0) })
        schedule.connectionOpened(at: now)
        #expect(schedule.attemptFailed(at: now + .seconds(9), random: 0.5) == .milliseconds(7500))
        schedule.connectionOpened(at: now)
        #expect(schedule.attemptFailed(at: now + .seconds(10), random: 1) == .seconds(1))
    }

    @Test func anAttemptIsDueWhenTheWaitIsOver() {
        var schedule = RetrySchedule(first: .milliseconds(100))
        let now = ContinuousClock.now
        #expect(schedule.isDue(at: now), "nothing has failed")
        schedule.attemptFailed(at: now, random: 0.5)
        #expect(schedule.retryAt == now + .milliseconds(50))
        #expect(!schedule.isDue(at: now + .milliseconds(49)))
        #expect(schedule.isDue(at: now + .milliseconds(50)))
        schedule.attemptFailed(at: now, random: 0.5)
        schedule.retryNow()
        #expect(schedule.isDue(at: now))
        #expect(schedule.attemptFailed(at: now, random: 1) == .milliseconds(400))
        schedule.attemptSucceeded()
        #expect(schedule.attemptFailed(at: now, random: 1) == .milliseconds(100))
    }
}

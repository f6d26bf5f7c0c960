import Postgres

/// When to poll the outbox and when to hold the advisory lock that makes writers ring.
///
/// Pure: events in, actions out, time passed in. Two sessions carry it out: A polls and LISTENs, B asks for the lock
/// exclusively and waits in its queue. A writer tries the lock shared, and Postgres refuses a try while somebody waits.
/// So each writer either stands before B in the queue, then his commit precedes B's grant and the poll after the grant
/// sees his row, or he rings. Nobody ever waits for the hub.
package struct Doorbell: Sendable {
    package typealias Instant = ContinuousClock.Instant

    package enum Mode: Sendable {
        /// Polling; the lock is free (or on its way to be), writers do not ring.
        case awake
        /// B waits for the lock: new writers ring, those in flight are polled for at growing intervals.
        case arming
        /// B has the lock; one poll begun after the grant is still owed.
        case dozing
        /// Nothing is polled until somebody rings.
        case asleep
    }

    package enum Action: Sendable, Equatable {
        /// B: `pg_advisory_lock`, without waiting for the answer.
        case requestLock
        /// B: `pg_advisory_unlock`.
        case releaseLock
        /// End B's waiting through A: `pg_cancel_backend`.
        case cancelRequest
    }

    enum Lock: Sendable { case free, requested, cancelling, held, releasing }

    /// The rhythm of one feed.
    package struct Rhythm: Sendable {
        /// Between polls while rows come, and while they might.
        package var busy: Duration = .milliseconds(1)
        package var idle: Duration = .milliseconds(2)
        /// Between polls while a window brings `crowd` rows and more: there polling would cost writers more than it
        /// gives.
        package var crowded: Duration = .milliseconds(3)
        package var crowd = 8
        /// How long empty polls go on before the lock is asked for.
        package var linger: Duration = .milliseconds(20)
        package var longestBackoff: Duration = .milliseconds(64)
        /// Asleep: a poll that should find nothing. It looks at the catalog, too (`CatalogWatch`).
        package var safety: Duration = .seconds(3)
        /// Writers never ring, as on a server where transactions may be prepared, which those that notified may not be: a
        /// sleeper has to look often.
        package var areWritersSilent = false {
            didSet { if areWritersSilent { safety = min(safety, .milliseconds(200)) } }
        }
        /// So many rings while B waits mean that writers pay more than polling costs.
        package var ringsWorthCancelling = 16

        package init() {}
    }

    package private(set) var mode = Mode.awake
    /// Rows that a safety poll found and nobody rang for: always 0, unless the doorbell is broken.
    package private(set) var missedRings = 0
    /// When the next poll is due.
    package private(set) var pollAt: Instant

    private let rhythm: Rhythm
    private(set) var lock = Lock.free
    private var lastActivity: Instant
    private var backoff: Duration
    private var hasRung = false
    private var ringsWhileArming = 0
    private var suspicion: Instant?

    package init(rhythm: Rhythm = Rhythm(), at now: Instant) {
        self.rhythm = rhythm
        pollAt = now
        lastActivity = now
        backoff = rhythm.idle
    }

    /// A is about to take a snapshot: what rang before is seen by it.
    package mutating func pollBegan() {
        hasRung = false
    }

    package mutating func pollEnded(rows: Int, at now: Instant) -> Action? {
        judgeSuspicion(at: now)
        if rows > 0 { lastActivity = now }
        defer { if hasRung { pollAt = now } }
        switch mode {
        case .awake:
            pollAt = now + (rows >= rhythm.crowd ? rhythm.crowded : rows > 0 ? rhythm.busy : rhythm.idle)
            guard rows == 0, !hasRung, lock == .free, now - lastActivity >= rhythm.linger else { return nil }
            mode = .arming
            lock = .requested
            backoff = rhythm.idle
            ringsWhileArming = 0
            return .requestLock
        case .arming:
            backoff = rows > 0 ? rhythm.busy : min(backoff * 2, rhythm.longestBackoff)
            pollAt = now + backoff
            guard ringsWhileArming >= rhythm.ringsWorthCancelling, lock == .requested else { return nil }
            mode = .awake
            lock = .cancelling
            return .cancelRequest
        case .dozing:
            guard rows == 0, !hasRung else { return wake(at: now + rhythm.busy) }
            mode = .asleep
            pollAt = now + rhythm.safety
            return nil
        case .asleep:
            pollAt = now + rhythm.safety
            guard rows > 0 else { return nil }
            // The ring of a commit that this very poll saw may still be on its way.
            suspicion = hasRung || rhythm.areWritersSilent ? nil : now
            return wake(at: now + rhythm.busy)
        }
    }

    /// A notification arrived on A.
    package mutating func rang(at now: Instant) -> Action? {
        hasRung = true
        suspicion = nil
        switch mode {
        case .awake:
            // Another hub sleeps, or the lock is not free yet; in both cases the next poll is near.
            if lock != .free { pollAt = now }
            return nil
        case .arming:
            ringsWhileArming += 1
            lastActivity = now
            pollAt = now
            return nil
        case .dozing:
            pollAt = now
            return nil
        case .asleep:
            lastActivity = now
            return wake(at: now)
        }
    }

    package mutating func lockGranted(at now: Instant) -> Action? {
        switch lock {
        case .requested:
            lock = .held
            mode = .dozing
            pollAt = now
            return nil
        case .cancelling:
            lock = .releasing
            return .releaseLock
        case .free, .held, .releasing:
            return nil
        }
    }

    /// B's waiting ended without the lock.
    package mutating func lockRefused(at now: Instant) {
        lock = .free
        if mode == .arming {
            mode = .awake
            pollAt = now
        }
    }

    package mutating func lockReleased() {
        lock = .free
    }

    private mutating func wake(at poll: Instant) -> Action? {
        mode = .awake
        pollAt = poll
        lock = .releasing
        return .releaseLock
    }

    private mutating func judgeSuspicion(at now: Instant) {
        guard let since = suspicion, now - since > .milliseconds(250) else { return }
        missedRings += 1
        suspicion = nil
    }
}

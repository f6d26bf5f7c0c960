import Postgres

/// Decides when to poll the outbox and when to hold the advisory lock that makes writers ring.
///
/// Pure: events in, actions out, time passed in. Two sessions carry it out: A polls and LISTENs, B requests the lock
/// exclusively and waits in its queue. A writer tries the lock in shared mode, and Postgres refuses the attempt while
/// another session waits. So each writer either is ahead of B in the queue, in which case its commit precedes B's grant and
/// the poll after the grant sees its row, or it rings. No writer ever waits for the hub.
package struct Doorbell: Sendable {
    package typealias Instant = ContinuousClock.Instant

    package enum Mode: Sendable {
        /// Polling; the lock is free (or about to be), and writers do not ring.
        case awake
        /// B waits for the lock: new writers ring, and rows of those in flight are polled for at growing intervals.
        case arming
        /// B has the lock; one poll begun after the grant is still owed.
        case dozing
        /// No polling until a writer rings.
        case asleep
    }

    package enum Action: Sendable, Equatable {
        /// B: `pg_advisory_lock`, without waiting for the result.
        case requestLock
        /// B: `pg_advisory_unlock`.
        case releaseLock
        /// Ends B's wait through A: `pg_cancel_backend`.
        case cancelRequest
    }

    enum Lock: Sendable { case free, requested, cancelling, held, releasing }

    /// The rhythm of one feed.
    package struct Rhythm: Sendable {
        /// Interval between polls while rows arrive, and while they might.
        package var busy: Duration = .milliseconds(1)
        package var idle: Duration = .milliseconds(2)
        /// Interval between polls while a window brings at least `crowd` rows: faster polling would then cost writers more
        /// than it gains.
        package var crowded: Duration = .milliseconds(3)
        package var crowd = 8
        /// Time of empty polls before the lock is requested.
        package var linger: Duration = .milliseconds(20)
        package var longestBackoff: Duration = .milliseconds(64)
        /// Interval of polls while asleep, which should find nothing. They also check the catalog (`CatalogWatch`).
        package var safety: Duration = .seconds(3)
        /// True if writers never ring, as on a server with prepared transactions, which must not have notified: a sleeping
        /// hub then has to poll often.
        package var areWritersSilent = false {
            didSet { if areWritersSilent { safety = min(safety, .milliseconds(200)) } }
        }
        /// At this many rings while B waits, writers pay more than polling would cost.
        package var ringsWorthCancelling = 16

        package init() {}
    }

    package private(set) var mode = Mode.awake
    /// Rows that a safety poll found without a ring: always 0, unless the doorbell is broken.
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

    /// A is about to take a snapshot, which sees everything that rang before.
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
            guard rows == 0, !hasRung else { return wakeUp(at: now + rhythm.busy) }
            mode = .asleep
            pollAt = now + rhythm.safety
            return nil
        case .asleep:
            pollAt = now + rhythm.safety
            guard rows > 0 else { return nil }
            // The ring of a commit that this very poll saw may still be on its way.
            suspicion = hasRung || rhythm.areWritersSilent ? nil : now
            return wakeUp(at: now + rhythm.busy)
        }
    }

    /// A notification arrived on A.
    package mutating func ringArrived(at now: Instant) -> Action? {
        hasRung = true
        suspicion = nil
        switch mode {
        case .awake:
            // Another hub is asleep, or the lock is not free yet; either way the next poll is near.
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
            return wakeUp(at: now)
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

    /// B's wait ended without the lock.
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

    private mutating func wakeUp(at poll: Instant) -> Action? {
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

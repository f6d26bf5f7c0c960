package import Hub
import Synchronization

/// The sockets of a loop for which the change feed is held back, and whether it is worth it.
///
/// A large transaction reaches everybody faster than anybody reads it. While most of the readers lag, waiting costs
/// nobody anything: it goes on as long as a slow reader takes bytes. Where only a few lag, all others pay: a socket that takes
/// nothing is written off soon, and for all of them together there is an allowance, filled up slowly, so that slow
/// readers hold up the others for a second at once and for a fiftieth of the time in the long run. Whoever is written off
/// goes on towards the cap alone.
package struct SlowReaders {
    /// Milliseconds without a byte taken, where most lag and where a few do.
    package static let longestSilence: Int64 = 1000
    package static let longestSilenceOfFew: Int64 = 250
    /// Milliseconds that a few may cost the others at once.
    package static let mostAllowance: Int64 = 1000
    /// Milliseconds in which one more is allowed.
    package static let refill: Int64 = 50
    /// Milliseconds between two looks at the same slowReaders.
    private static let rhythm: Int64 = 10

    private var list: [(slot: Slot, silence: Int64)] = []
    private var places: [Slot: Int] = [:]
    /// Milliseconds, times `refill`. A look may find it overdrawn, which is paid back.
    private var allowance = mostAllowance * refill
    private var refilled: Int64?
    /// When the hold was last looked at; nil if there is none.
    private var looked: Int64?
    private var wasForFew = false
    /// Milliseconds in which changes were held back, ever.
    package private(set) var held: Int64 = 0

    package init() {}

    package var isEmpty: Bool { list.isEmpty }
    /// Nobody holds anything back, and nobody did when last asked.
    package var isIdle: Bool { list.isEmpty && looked == nil }

    package mutating func add(_ slot: Slot) {
        places[slot] = list.count
        list.append((slot, 0))
    }

    package mutating func remove(_ slot: Slot) {
        guard let place = places.removeValue(forKey: slot) else { return }
        let last = list.removeLast()
        guard place < list.count else { return }
        list[place] = last
        places[last.slot] = place
    }

    /// Counts the time since the last look. Returns who is to be written off; the caller removes them.
    ///
    /// - Parameters:
    ///   - now: milliseconds on a clock that only goes forward.
    ///   - holds: whether there is anything to hold back.
    ///   - mostLag: whether most of those who read changes lag.
    ///   - hasTaken: whether a socket took bytes since it was last asked about.
    package mutating func look(now: Int64, holds: Bool, mostLag: Bool, hasTaken: (Slot) -> Bool) -> [Slot] {
        if let looked, holds, !list.isEmpty, now - looked < Self.rhythm { return [] }
        let elapsed = now - (looked ?? now)
        pay(elapsed, now: now)
        guard holds, !list.isEmpty else {
            looked = nil
            return []
        }
        looked = now
        wasForFew = !mostLag
        let isUsedUp = wasForFew && allowance < Self.refill
        let limit = mostLag ? Self.longestSilence : Self.longestSilenceOfFew
        var given: [Slot] = []
        for index in list.indices {
            list[index].silence = hasTaken(list[index].slot) ? 0 : list[index].silence + elapsed
            if isUsedUp || list[index].silence >= limit { given.append(list[index].slot) }
        }
        return given
    }

    private mutating func pay(_ elapsed: Int64, now: Int64) {
        held += elapsed
        if wasForFew { allowance -= elapsed * Self.refill }
        allowance = min(Self.mostAllowance * Self.refill, allowance + now - (refilled ?? now))
        refilled = now
    }
}

/// How many sockets read row changes, and how many of these lag behind; all loops' together, because the feed waits for
/// the slowest loop.
final class ChangeReaders: Sendable {
    private let all = Atomic<Int>(0)
    private let lagging = Atomic<Int>(0)

    func joined() { all.add(1, ordering: .relaxed) }
    func left() { all.subtract(1, ordering: .relaxed) }
    func fellBehind() { lagging.add(1, ordering: .relaxed) }
    func caughtUp() { lagging.subtract(1, ordering: .relaxed) }

    /// To wait for them costs nobody but themselves.
    var mostLag: Bool { lagging.load(ordering: .relaxed) * 2 >= all.load(ordering: .relaxed) }
}

package import Hub
import Synchronization

/// The sockets of a loop for which the change feed is held back, and whether holding it back is worthwhile.
///
/// A large transaction arrives faster than any client reads it. While most readers lag, waiting costs nothing: the hold
/// lasts as long as a slow reader takes bytes. If only a few lag, all others pay for them. A socket that takes nothing
/// is then written off soon, and all slow sockets share an allowance that refills slowly, so that they delay the others
/// for one second at a time, and for a fiftieth of the time in the long run. A socket that is written off continues
/// towards its cap alone.
package struct SlowReaders {
    /// Milliseconds without progress before a socket is written off: if most readers lag, and if a few do.
    package static let longestSilence: Int64 = 1000
    package static let longestSilenceOfFew: Int64 = 250
    /// Milliseconds of delay that a few may cause the others at once.
    package static let mostAllowance: Int64 = 1000
    /// Milliseconds in which the allowance grows by one.
    package static let refill: Int64 = 50
    /// Milliseconds between two checks of the same slow readers.
    private static let rhythm: Int64 = 10

    private var list: [(slot: Slot, silence: Int64)] = []
    private var places: [Slot: Int] = [:]
    /// In milliseconds times `refill`. A check may overdraw it; the debt is paid back.
    private var allowance = mostAllowance * refill
    private var refilled: Int64?
    /// When the hold was last checked; nil if there is none.
    private var looked: Int64?
    private var wasForFew = false
    /// Total milliseconds in which changes were held back.
    package private(set) var held: Int64 = 0

    package init() {}

    package var isEmpty: Bool { list.isEmpty }
    /// True if there are no slow readers, and there were none at the last check.
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

    /// Counts the time since the last call. Returns the sockets to write off; the caller removes them.
    ///
    /// - Parameters:
    ///   - now: milliseconds on a monotonic clock.
    ///   - holds: whether there are changes to hold back.
    ///   - mostLag: whether most sockets that read changes lag.
    ///   - hasTaken: whether a socket took bytes since the last query.
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

/// The number of sockets that read row changes, and how many of them lag; counted over all loops, because the feed
/// waits for the slowest loop.
final class ChangeReaders: Sendable {
    private let all = Atomic<Int>(0)
    private let lagging = Atomic<Int>(0)

    func joined() { all.add(1, ordering: .relaxed) }
    func left() { all.subtract(1, ordering: .relaxed) }
    func fellBehind() { lagging.add(1, ordering: .relaxed) }
    func caughtUp() { lagging.subtract(1, ordering: .relaxed) }

    /// True if at least half lag, so that waiting costs only them.
    var mostLag: Bool { lagging.load(ordering: .relaxed) * 2 >= all.load(ordering: .relaxed) }
}

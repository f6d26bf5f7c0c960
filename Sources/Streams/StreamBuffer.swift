import Synchronization

/// The readers' side of one stream: its bytes, and how it stands. From any thread; whoever keeps streams writes.
///
/// Bytes that are here are durable, and never change. A reader is an offset; it copies what it needs, under a lock that is held for
/// no longer than copying takes.
package final class StreamBuffer: Sendable {
    package let id: StreamID
    package let name: StreamName
    package let configuration: StreamConfiguration

    private struct State {
        /// All full but the last.
        var blocks: [[UInt8]] = []
        var end = 0
        var status = StreamStatus.open
        var isGone = false
        /// Loops that watch, and those of them that were told of a change and did not look yet; a bit for each.
        var watching: UInt64 = 0
        var told: UInt64 = 0
    }

    private let state = Mutex(State())
    private static let blockBytes = 65_536

    package init(id: StreamID, name: StreamName, configuration: StreamConfiguration) {
        self.id = id
        self.name = name
        self.configuration = configuration
    }

    package var snapshot: StreamSnapshot {
        state.withLock {
            StreamSnapshot(id: id, name: name, configuration: configuration, end: $0.end, status: $0.status)
        }
    }

    /// Deleted, or beyond its lifetime; readers end.
    package var isGone: Bool { state.withLock { $0.isGone } }

    /// Appends the bytes of a range to `out`; what of it lies beyond the end is left out.
    package func copy(_ range: Range<Int>, into out: inout [UInt8]) {
        state.withLock { state in
            var place = range.lowerBound
            let end = min(range.upperBound, state.end)
            while place < end {
                let start = place % Self.blockBytes
                let count = min(Self.blockBytes - start, end - place)
                out += state.blocks[place / Self.blockBytes][start..<(start + count)]
                place += count
            }
        }
    }

    // MARK: The writer's side

    /// - Returns: the loops that are to be told.
    package func append(_ bytes: some RandomAccessCollection<UInt8>) -> UInt64 {
        state.withLock { state in
            var rest = bytes[...]
            while !rest.isEmpty {
                let start = state.end % Self.blockBytes
                if start == 0 { state.blocks.append([]) }
                let count = min(Self.blockBytes - start, rest.count)
                state.blocks[state.blocks.count - 1] += rest.prefix(count)
                state.end += count
                rest = rest.dropFirst(count)
            }
            return Self.news(&state)
        }
    }

    package func set(_ status: StreamStatus) -> UInt64 {
        state.withLock { state in
            state.status = status
            return Self.news(&state)
        }
    }

    package func setGone() -> UInt64 {
        state.withLock { state in
            state.isGone = true
            return Self.news(&state)
        }
    }

    private static func news(_ state: inout State) -> UInt64 {
        defer { state.told |= state.watching }
        return state.watching & ~state.told
    }

    // MARK: Watching

    /// - Parameter loop: below 64.
    package func addWatch(by loop: Int) { state.withLock { $0.watching |= 1 << UInt64(loop) } }

    package func removeWatch(by loop: Int) {
        state.withLock {
            $0.watching &= ~(1 << UInt64(loop))
            $0.told &= ~(1 << UInt64(loop))
        }
    }

    /// To be called by a loop before it looks: what happens from here on is told anew.
    package func noteSeen(by loop: Int) { state.withLock { $0.told &= ~(1 << UInt64(loop)) } }

    package var isWatched: Bool { state.withLock { $0.watching != 0 } }
}

import Synchronization

/// The readers' side of one stream: its bytes and its status. Thread-safe; only the stream's keeper writes.
///
/// Bytes here are durable and never change. A reader is an offset; it copies what it needs under a lock that is held only while copying.
package final class StreamBuffer: Sendable {
    package let id: StreamID
    package let name: StreamName
    package let configuration: StreamConfiguration

    private struct State {
        /// All full except the last. The first may have bytes before `start`.
        var blocks: [[UInt8]] = []
        /// The number of the first block kept.
        var firstBlock = 0
        /// The earliest offset kept.
        var start = 0
        var end = 0
        var status = StreamStatus.open
        var isGone = false
        /// The loops that watch, and whether each has been told of a change and has not looked since.
        var watching: [(loop: Int, isTold: Bool)] = []
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
            StreamSnapshot(
                id: id, name: name, configuration: configuration, start: $0.start, end: $0.end, status: $0.status)
        }
    }

    /// Deleted or expired; readers end.
    package var isGone: Bool { state.withLock { $0.isGone } }

    /// Appends the bytes of a range to `out`, up to the stream's end; nothing if the range's beginning is no longer kept.
    package func copyBytes(_ range: Range<Int>, into out: inout [UInt8]) {
        state.withLock { state in
            var place = range.lowerBound
            guard place >= state.start else { return }
            let end = min(range.upperBound, state.end)
            while place < end {
                let start = place % Self.blockBytes
                let count = min(Self.blockBytes - start, end - place)
                out += state.blocks[place / Self.blockBytes - state.firstBlock][start..<(start + count)]
                place += count
            }
        }
    }

    // MARK: The writer's side

    /// - Returns: the loops to notify.
    package func append(_ bytes: some RandomAccessCollection<UInt8>) -> [Int] {
        state.withLock { state in
            var rest = bytes[...]
            while !rest.isEmpty {
                let start = state.end % Self.blockBytes
                if start == 0 || state.blocks.isEmpty { state.blocks.append([UInt8](repeating: 0, count: start)) }
                let count = min(Self.blockBytes - start, rest.count)
                state.blocks[state.blocks.count - 1] += rest.prefix(count)
                state.end += count
                rest = rest.dropFirst(count)
            }
            return Self.loopsToTell(&state)
        }
    }

    /// Drops the content before an offset. A stream without bytes then begins there.
    ///
    /// - Returns: the loops to notify.
    package func dropBytes(before start: Int) -> [Int] {
        state.withLock { state in
            state.start = max(state.start, start)
            state.end = max(state.end, start)
            let first = state.start / Self.blockBytes
            state.blocks.removeFirst(min(state.blocks.count, first - state.firstBlock))
            state.firstBlock = first
            return Self.loopsToTell(&state)
        }
    }

    package func setStatus(_ status: StreamStatus) -> [Int] {
        state.withLock { state in
            state.status = status
            return Self.loopsToTell(&state)
        }
    }

    package func setGone() -> [Int] {
        state.withLock { state in
            state.isGone = true
            return Self.loopsToTell(&state)
        }
    }

    private static func loopsToTell(_ state: inout State) -> [Int] {
        var loops: [Int] = []
        for place in state.watching.indices where !state.watching[place].isTold {
            state.watching[place].isTold = true
            loops.append(state.watching[place].loop)
        }
        return loops
    }

    // MARK: Watching

    package func addWatch(by loop: Int) {
        state.withLock { state in
            if !state.watching.contains(where: { $0.loop == loop }) { state.watching.append((loop, false)) }
        }
    }

    package func removeWatch(by loop: Int) { state.withLock { $0.watching.removeAll { $0.loop == loop } } }

    /// Called by a loop before it looks: later changes are reported again.
    package func noteSeen(by loop: Int) {
        state.withLock { state in
            guard let place = state.watching.firstIndex(where: { $0.loop == loop }) else { return }
            state.watching[place].isTold = false
        }
    }

    package var isWatched: Bool { state.withLock { !$0.watching.isEmpty } }
}

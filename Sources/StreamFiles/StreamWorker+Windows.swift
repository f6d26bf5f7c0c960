import Glibc
import Streams

/// Streams of which only the newest content is kept (`streams.bounds` with `keep: newest`): older content leaves the memory and the file.
extension StreamWorker {
    /// Moves the start of a stream's window if due. The file is rewritten first, so a restart begins where readers do.
    /// This precedes the answers to appends: by then, no more is kept than the bound allows.
    func moveWindow(of stream: KeptStream) {
        let bound = bound(of: stream)
        guard bound.keepsNewest, stream.log.ending == nil, stream.waiting == nil, !stream.isChanged else { return }
        let old = bound.age.map { stream.endOffset(before: Self.monotonic - $0) } ?? 0
        guard let due = bound.beginning(of: stream.log.start..<stream.log.end, old: old) else { return }
        let start = stream.buffer.boundary(behind: due)
        guard start > stream.log.start else { return }
        let dropped = start - stream.log.start
        guard let loops = stream.dropBytes(before: start, folder) else {
            figures.failures += 1
            if !hasWarned {
                setup.logger.error(
                    "The window of a stream cannot be moved in \(setup.directory) (\(String(cString: strerror(errno)))): when it has grown to twice its bytes, appends are refused."
                )
                hasWarned = true
            }
            return
        }
        growShare(stream, by: -dropped)
        notifyLoops(loops, of: stream.buffer)
    }

    /// Makes room in a window for an append: writes earlier appends, and drops older content.
    ///
    /// - Returns: false if there is none, because the window cannot be moved.
    func makeWindow(for bytes: Int, in stream: KeptStream) -> Bool {
        let bound = bound(of: stream)
        guard bound.keepsNewest, stream.log.kept + bytes > bound.most else { return true }
        commitBatches()
        addToBatch(stream)
        return stream.log.kept + bytes <= bound.most
    }
}

extension StreamBuffer {
    /// The first offset, from the given one on, at which the content may be cut.
    fileprivate func boundary(behind offset: Int) -> Int {
        let snapshot = snapshot
        guard snapshot.start < offset, offset < snapshot.end else { return offset }
        switch configuration.content {
        case .binary: return offset
        case .text:
            var bytes: [UInt8] = []
            copyBytes(offset..<min(offset + 4, snapshot.end), into: &bytes)
            return offset + bytes.prefix { $0 & 0xC0 == 0x80 }.count
        case .json:
            var bytes: [UInt8] = []
            // A message may end directly before.
            copyBytes((offset - 1)..<snapshot.end, into: &bytes)
            return bytes.firstIndex(of: UInt8(ascii: "\n")).map { offset + $0 } ?? snapshot.end
        }
    }
}

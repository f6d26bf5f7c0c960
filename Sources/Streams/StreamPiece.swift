/// Bytes of a stream from an offset on, cut where the content may be cut.
package struct StreamPiece: Sendable {
    package let bytes: [UInt8]
    private let content: StreamContent
    /// The offset at which the next piece begins.
    package let end: Int

    package var isEmpty: Bool { bytes.isEmpty }

    /// Nil if this offset was never given to a reader: it lies beyond the end, within a character or within a message.
    /// Nil also if the content there is no longer kept, even if it was dropped after the snapshot.
    ///
    /// - Parameter most: the limit in bytes, which only a single larger message may exceed.
    package init?(of stream: StreamBuffer, in snapshot: StreamSnapshot, from start: Int, most: Int) {
        guard snapshot.start <= start, start <= snapshot.end else { return nil }
        content = snapshot.configuration.content
        // The byte before shows whether a message begins here; at the start of what is kept, one does.
        let margin = min(start - snapshot.start, 1)
        var found: [UInt8] = []
        var length = most
        var cut: Int?
        repeat {
            found.removeAll(keepingCapacity: true)
            let range = (start - margin)..<min(start + length, snapshot.end)
            stream.copyBytes(range, into: &found)
            guard found.count == range.count else { return nil }
            let isLast = start + length >= snapshot.end
            cut = isLast ? found.count : Self.cutOffset(found[margin...], content)
            length *= 2
        } while cut == nil
        guard Self.isBoundary(found, at: margin, content) else { return nil }
        bytes = Array(found[margin..<(cut ?? found.count)])
        end = start + bytes.count
    }

    private static func isBoundary(_ found: [UInt8], at start: Int, _ content: StreamContent) -> Bool {
        switch content {
        case .binary: true
        case .text: start == found.count || found[start] & 0xC0 != 0x80
        case .json: start == 0 || found[start - 1] == UInt8(ascii: "\n")
        }
    }

    /// The place where a piece that continues after these bytes may end; nil if they are too few.
    private static func cutOffset(_ found: ArraySlice<UInt8>, _ content: StreamContent) -> Int? {
        switch content {
        case .binary: return found.endIndex
        case .json: return found.lastIndex(of: UInt8(ascii: "\n")).map { $0 + 1 }
        case .text:
            guard let last = found.lastIndex(where: { $0 & 0xC0 != 0x80 }) else { return nil }
            // The first byte of a character determines its length (RFC 3629, section 3).
            let length = found[last] < 0x80 ? 1 : found[last] < 0xE0 ? 2 : found[last] < 0xF0 ? 3 : 4
            let cut = last + length == found.endIndex ? found.endIndex : last
            return cut > found.startIndex ? cut : nil
        }
    }

    /// The form of a page: an array of the messages, or the bytes.
    package var body: [UInt8] { content == .json ? messages(separatedBy: [UInt8(ascii: ",")]) : bytes }

    private func messages(separatedBy separator: [UInt8]) -> [UInt8] {
        var out: [UInt8] = [UInt8(ascii: "[")]
        out.reserveCapacity(bytes.count + 2)
        for byte in bytes.dropLast() {
            if byte == UInt8(ascii: "\n") { out += separator } else { out.append(byte) }
        }
        out.append(UInt8(ascii: "]"))
        return out
    }
}

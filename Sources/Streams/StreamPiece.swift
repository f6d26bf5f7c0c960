/// Bytes of a stream from one offset on, cut where its content may be cut.
package struct StreamPiece: Sendable {
    package let bytes: [UInt8]
    private let content: StreamContent
    /// Where the next piece begins.
    package let end: Int

    package var isEmpty: Bool { bytes.isEmpty }

    /// Nil where nobody can have been given this offset: it is beyond the end, within a character or within a message. Nil, too, if what
    /// stands there is not kept any more, also since the snapshot was made.
    ///
    /// - Parameter most: bytes, but for a single message that is larger.
    package init?(of stream: StreamBuffer, in snapshot: StreamSnapshot, from start: Int, most: Int) {
        guard snapshot.start <= start, start <= snapshot.end else { return nil }
        content = snapshot.configuration.content
        // The byte before tells whether a message begins here; with what is kept, one does.
        let margin = min(start - snapshot.start, 1)
        var found: [UInt8] = []
        var length = most
        var cut: Int?
        repeat {
            found.removeAll(keepingCapacity: true)
            let range = (start - margin)..<min(start + length, snapshot.end)
            stream.copy(range, into: &found)
            guard found.count == range.count else { return nil }
            let isLast = start + length >= snapshot.end
            cut = isLast ? found.count : Self.cut(found[margin...], content)
            length *= 2
        } while cut == nil
        guard Self.begins(found, at: margin, content) else { return nil }
        bytes = Array(found[margin..<(cut ?? found.count)])
        end = start + bytes.count
    }

    private static func begins(_ found: [UInt8], at start: Int, _ content: StreamContent) -> Bool {
        switch content {
        case .binary: true
        case .text: start == found.count || found[start] & 0xC0 != 0x80
        case .json: start == 0 || found[start - 1] == UInt8(ascii: "\n")
        }
    }

    /// Where a piece that goes on behind these bytes may end; nil where they are too few.
    private static func cut(_ found: ArraySlice<UInt8>, _ content: StreamContent) -> Int? {
        switch content {
        case .binary: return found.endIndex
        case .json: return found.lastIndex(of: UInt8(ascii: "\n")).map { $0 + 1 }
        case .text:
            guard let last = found.lastIndex(where: { $0 & 0xC0 != 0x80 }) else { return nil }
            // What the first byte of a character says of its length (RFC 3629, section 3).
            let length = found[last] < 0x80 ? 1 : found[last] < 0xE0 ? 2 : found[last] < 0xF0 ? 3 : 4
            let cut = last + length == found.endIndex ? found.endIndex : last
            return cut > found.startIndex ? cut : nil
        }
    }

    /// As a page has it: an array of the messages, or the bytes.
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

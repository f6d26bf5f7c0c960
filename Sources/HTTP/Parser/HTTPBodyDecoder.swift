package enum HTTPBodyProgress: Sendable, Equatable {
    /// More bytes are needed.
    case incomplete
    /// The body has ended; the bytes not consumed are the next request.
    case complete
    case refused(HTTPRefusal)
}

/// Removes a body's framing, piece by piece as it arrives (RFC 9112, sections 6 and 7). Chunk extensions and trailers
/// are checked and skipped. The user of this type limits the content's length.
package struct HTTPBodyDecoder: Sendable {
    private var stage: Stage
    /// Bytes of chunk extensions so far.
    private var extensionBytes = 0
    /// Bytes of trailers so far.
    private var trailerBytes = 0
    /// The incomplete trailer line.
    private var line: [UInt8] = []

    private enum Stage {
        /// Bytes missing from a body with a length.
        case content(Int)
        /// The chunk size so far, and the number of its digits.
        case size(Int, digits: Int)
        case sizeExtension(Int)
        /// The line feed behind the size comes next.
        case sizeLineFeed(Int)
        case chunk(Int)
        case chunkCarriageReturn
        case chunkLineFeed
        case trailer
        case end
        case refused(HTTPRefusal)
    }

    private static let sizeDigits = 16
    /// In one body.
    private static let extensionLimit = 16_384
    /// In one body.
    private static let trailerLimit = 16_384

    package init(_ framing: HTTPBodyFraming) {
        stage =
            switch framing {
            case .none, .length(0): .end
            case .length(let length): .content(length)
            case .chunked: .size(0, digits: 0)
            }
    }

    /// Appends decoded content to `content`.
    /// - Parameter bytes: the bytes behind those consumed so far.
    /// - Returns: how many of `bytes` were consumed, and the progress.
    package mutating func decode(
        _ bytes: UnsafeRawBufferPointer, into content: inout [UInt8]
    ) -> (consumed: Int, HTTPBodyProgress) {
        let bytes = bytes.assumingMemoryBound(to: UInt8.self).span
        var at = 0
        do {
            while true {
                if case .end = stage { return (at, .complete) }
                guard at < bytes.count else { return (at, .incomplete) }
                try step(bytes, &at, &content)
            }
        } catch {
            stage = .refused(error)
            return (at, .refused(error))
        }
    }

    /// Consumes at least one byte, or throws.
    private mutating func step(
        _ bytes: Span<UInt8>, _ at: inout Int, _ content: inout [UInt8]
    ) throws(HTTPRefusal) {
        switch stage {
        case .content(let missing):
            let rest = missing - Self.take(missing, bytes, &at, &content)
            stage = rest == 0 ? .end : .content(rest)
        case .size(let size, let digits):
            stage = try Self.readSize(size, digits, bytes[at])
            at += 1
        case .sizeExtension(let size):
            try skipExtension(size, bytes, &at)
        case .sizeLineFeed(let size):
            guard bytes[at] == HTTPByte.lineFeed else { throw .chunkSize }
            at += 1
            stage = size == 0 ? .trailer : .chunk(size)
        case .chunk(let missing):
            let rest = missing - Self.take(missing, bytes, &at, &content)
            stage = rest == 0 ? .chunkCarriageReturn : .chunk(rest)
        case .chunkCarriageReturn:
            guard bytes[at] == HTTPByte.carriageReturn else { throw .chunkEnd }
            at += 1
            stage = .chunkLineFeed
        case .chunkLineFeed:
            guard bytes[at] == HTTPByte.lineFeed else { throw .chunkEnd }
            at += 1
            stage = .size(0, digits: 0)
        case .trailer:
            try readTrailer(bytes, &at)
        case .end: break
        case .refused(let refusal): throw refusal
        }
    }

    /// - Returns: the number of content bytes.
    private static func take(_ missing: Int, _ bytes: Span<UInt8>, _ at: inout Int, _ content: inout [UInt8]) -> Int {
        let end = at + min(missing, bytes.count - at)
        let count = end - at
        bytes.extracting(at..<end).withUnsafeBufferPointer { content.append(contentsOf: $0) }
        at = end
        return count
    }

    private static func readSize(_ size: Int, _ digits: Int, _ byte: UInt8) throws(HTTPRefusal) -> Stage {
        if let digit = HTTPByte.hexValue(byte) {
            // Above Int.max there is no room for another digit.
            guard digits < sizeDigits, size <= Int.max >> 4 else { throw .chunkSize }
            return .size(size << 4 | Int(digit), digits: digits + 1)
        }
        guard digits > 0 else { throw .chunkSize }
        switch byte {
        case HTTPByte.carriageReturn: return .sizeLineFeed(size)
        case UInt8(ascii: ";"): return .sizeExtension(size)
        default: throw .chunkSize
        }
    }

    private mutating func skipExtension(_ size: Int, _ bytes: Span<UInt8>, _ at: inout Int) throws(HTTPRefusal) {
        while at < bytes.count {
            let byte = bytes[at]
            if byte == HTTPByte.carriageReturn {
                at += 1
                stage = .sizeLineFeed(size)
                return
            }
            guard HTTPByte.isVisible(byte) || HTTPByte.isBlank(byte) else { throw .chunkExtension }
            extensionBytes += 1
            guard extensionBytes <= Self.extensionLimit else { throw .chunkExtensions(Self.extensionLimit) }
            at += 1
        }
    }

    private mutating func readTrailer(_ bytes: Span<UInt8>, _ at: inout Int) throws(HTTPRefusal) {
        while at < bytes.count {
            let byte = bytes[at]
            at += 1
            trailerBytes += 1
            guard trailerBytes <= Self.trailerLimit else { throw .trailers(Self.trailerLimit) }
            guard byte == HTTPByte.lineFeed else {
                line.append(byte)
                continue
            }
            guard line.popLast() == HTTPByte.carriageReturn else { throw .bareLineFeed }
            guard !line.isEmpty else {
                stage = .end
                return
            }
            try Self.check(trailer: line.span)
            line.removeAll(keepingCapacity: true)
        }
    }

    private static func check(trailer bytes: Span<UInt8>) throws(HTTPRefusal) {
        let field = try HTTPFieldLine(0..<bytes.count, in: bytes)
        switch bytes.lowercasedText(field.name) {
        case "content-length", "transfer-encoding", "host": throw .trailerField
        default: break
        }
    }
}

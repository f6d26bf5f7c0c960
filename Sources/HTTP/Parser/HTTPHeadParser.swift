import Wire

/// The limits of a head.
package struct HTTPLimits: Sendable {
    /// From the first byte to the end of the empty line.
    package let headBytes: Int
    package let fields: Int
    package let targetBytes: Int

    package init(headBytes: Int = 16_384, fields: Int = 100, targetBytes: Int = 8_192) {
        self.headBytes = headBytes
        self.fields = fields
        self.targetBytes = targetBytes
    }
}

package enum HTTPHeadProgress: Sendable {
    /// More bytes are needed.
    case incomplete
    /// - Parameter length: of the head with its empty line; the body or the next request follows.
    case complete(HTTPHead, length: Int)
    case refused(HTTPRefusal)
}

/// Parses the head of one request, strictly: anything that two servers might read differently is refused (RFC 9112,
/// sections 3, 5, 6 and 11.2), so that no request can hide in what a proxy takes for the body of another.
package struct HTTPHeadParser: Sendable {
    private let limits: HTTPLimits
    private var stage = Stage.start
    /// The start of the incomplete line.
    private var lineStart = 0
    /// No byte before this offset ends the stage.
    private var looked = 0
    private var method = 0..<0
    private var target = 0..<0
    private var isHTTP10 = false
    private var lines: [HTTPFieldLine] = []

    private enum Stage { case start, method, requestLine, fields }

    /// The longest method in use has 17 letters.
    private static let methodBytes = 32

    package init(limits: HTTPLimits = HTTPLimits()) {
        self.limits = limits
    }

    /// Continues where the last call stopped, so a head that arrives in many pieces costs no more than one that arrives
    /// whole, with the same result. Resets itself after any result other than `incomplete`.
    /// - Parameter bytes: everything received of this request, from its first byte, and whatever follows.
    package mutating func parse(_ bytes: UnsafeRawBufferPointer) -> HTTPHeadProgress {
        let bytes = bytes.assumingMemoryBound(to: UInt8.self).span.extracting(first: limits.headBytes)
        do {
            guard try advance(bytes) else { return .incomplete }
            let head = try head(bytes)
            let length = lineStart
            self = HTTPHeadParser(limits: limits)
            return .complete(head, length: length)
        } catch {
            self = HTTPHeadParser(limits: limits)
            return .refused(error)
        }
    }

    /// Whether the head is complete.
    private mutating func advance(_ bytes: Span<UInt8>) throws(HTTPRefusal) -> Bool {
        if stage == .start {
            guard try skipEmptyLine(bytes) else { return false }
            stage = .method
        }
        if stage == .method {
            guard try readMethod(bytes) else { return false }
            stage = .requestLine
        }
        while let line = try nextLine(bytes) {
            if stage == .requestLine {
                try read(requestLine: (method.upperBound + 1)..<line.upperBound, bytes)
                stage = .fields
            } else if line.isEmpty {
                return true
            } else {
                if lines.isEmpty { lines.reserveCapacity(24) }
                guard lines.count < limits.fields else { throw .tooManyFields(limits.fields) }
                lines.append(try HTTPFieldLine(line, in: bytes))
            }
        }
        return false
    }

    /// Skips an empty line before the request line: old clients send one after a body (RFC 9112, section 2.2).
    private mutating func skipEmptyLine(_ bytes: Span<UInt8>) throws(HTTPRefusal) -> Bool {
        guard bytes.count > 0 else { return false }
        if bytes[0] == HTTPByte.carriageReturn {
            guard bytes.count > 1 else { return false }
            guard bytes[1] == HTTPByte.lineFeed else { throw .bareCarriageReturn }
            lineStart = 2
            looked = 2
        }
        return true
    }

    /// Reads byte by byte, so that anything other than HTTP is refused before a line ends.
    private mutating func readMethod(_ bytes: Span<UInt8>) throws(HTTPRefusal) -> Bool {
        while looked < bytes.count, HTTPByte.isToken(bytes[looked]) { looked += 1 }
        guard looked - lineStart <= Self.methodBytes else { throw .methodTooLong }
        guard looked < bytes.count else { return false }
        guard looked > lineStart, bytes[looked] == HTTPByte.space else {
            // A TLS handshake record (RFC 8446, section 5.1).
            throw bytes[lineStart] == 0x16 ? .tls : .noRequestLine
        }
        method = lineStart..<looked
        return true
    }

    /// Returns the next line without its CR and LF.
    private mutating func nextLine(_ bytes: Span<UInt8>) throws(HTTPRefusal) -> Range<Int>? {
        looked = PlainRun.endOfLine(in: bytes, from: looked)
        while looked < bytes.count, bytes[looked] != HTTPByte.lineFeed { looked += 1 }
        guard looked < bytes.count else {
            guard bytes.count < limits.headBytes else {
                throw stage == .requestLine ? .targetTooLong(limits.targetBytes) : .headTooLong(limits.headBytes)
            }
            return nil
        }
        guard looked > lineStart, bytes[looked - 1] == HTTPByte.carriageReturn else { throw .bareLineFeed }
        let line = lineStart..<(looked - 1)
        looked += 1
        lineStart = looked
        return line
    }

    /// - Parameter rest: the line behind the method and its space.
    private mutating func read(requestLine rest: Range<Int>, _ bytes: Span<UInt8>) throws(HTTPRefusal) {
        var end = rest.lowerBound
        while end < rest.upperBound, HTTPByte.isVisible(bytes[end]) { end += 1 }
        guard end < rest.upperBound else { throw .noVersion }
        guard bytes[end] == HTTPByte.space else {
            throw bytes[end] == HTTPByte.carriageReturn ? .bareCarriageReturn : .targetBytes
        }
        let version = (end + 1)..<rest.upperBound
        guard end > rest.lowerBound, version.count == 8, bytes.text(version.prefix(5)) == "HTTP/",
            HTTPByte.isDigit(bytes[end + 6]), bytes[end + 7] == UInt8(ascii: "."), HTTPByte.isDigit(bytes[end + 8])
        else { throw .noVersion }
        guard bytes[end + 6] == UInt8(ascii: "1") else { throw .version }
        guard end - rest.lowerBound <= limits.targetBytes else { throw .targetTooLong(limits.targetBytes) }
        // Versions above 1.1 are treated as 1.1 (RFC 9110, section 2.5).
        isHTTP10 = bytes[end + 8] == UInt8(ascii: "0")
        target = rest.lowerBound..<end
    }
}

// MARK: The head

extension HTTPHeadParser {
    private func head(_ bytes: Span<UInt8>) throws(HTTPRefusal) -> HTTPHead {
        var routing = HTTPRoutingFields()
        for line in lines { try routing.take(line, bytes) }
        let method = bytes.text(method)
        let target = try HTTPTarget(bytes.extracting(target), method: method)
        if let authority = target.authority, let host = routing.host {
            guard bytes.lowercasedText(host) == authority else { throw .authority }
        }
        guard routing.host != nil || isHTTP10 else { throw .noHost }
        let body = try routing.framing(isHTTP10: isHTTP10)
        func lists(_ token: String, _ name: String) -> Bool {
            lines.contains {
                bytes.isEqual($0.name, ignoringCase: name) && HTTPList.contains(token, in: bytes.text($0.value))
            }
        }
        let closes = routing.hasConnection && lists("close", "connection")
        let keepsAlive = isHTTP10 ? routing.hasConnection && lists("keep-alive", "connection") && !closes : !closes
        let hasContent = body != .none && body != .length(0)
        return HTTPHead(
            method: method, target: target.text, path: target.path, query: target.query, isHTTP10: isHTTP10,
            body: body, keepsAlive: keepsAlive,
            expectsContinue: routing.hasExpect && !isHTTP10 && hasContent && lists("100-continue", "expect"),
            bytes: bytes.extracting(first: lineStart).withUnsafeBufferPointer { Array($0) }, lines: lines,
            missingHost: routing.host == nil ? target.authority : nil)
    }
}

/// The fields that determine a request's destination and length.
private struct HTTPRoutingFields {
    private(set) var host: Range<Int>?
    private(set) var hasConnection = false
    private(set) var hasExpect = false
    private var length: Int?
    private var isChunked = false

    /// As many digits as the largest length has. Implementations differ on whether leading zeros count.
    private static let lengthDigits = 19

    mutating func take(_ line: HTTPFieldLine, _ bytes: Span<UInt8>) throws(HTTPRefusal) {
        let value = line.value
        func names(_ name: StaticString) -> Bool { bytes.isEqual(line.name, ignoringCase: name) }
        switch line.name.count {
        case 4 where names("host"):
            guard host == nil else { throw .repeatedHost }
            guard HTTPAuthority.isValid(bytes.extracting(value), needsPort: false) else { throw .host }
            host = value
        case 6 where names("expect"):
            hasExpect = true
        case 10 where names("connection"):
            hasConnection = true
        case 14 where names("content-length"):
            guard length == nil else { throw .repeatedLength }
            length = try number(value, bytes)
        case 17 where names("transfer-encoding"):
            guard !isChunked, isChunked(value, bytes) else { throw .coding }
            isChunked = true
        default: break
        }
    }

    func framing(isHTTP10: Bool) throws(HTTPRefusal) -> HTTPBodyFraming {
        guard isChunked else { return length.map { .length($0) } ?? .none }
        guard length == nil else { throw .lengthAndCoding }
        guard !isHTTP10 else { throw .codingOf10 }
        return .chunked
    }

    /// Names of codings ignore case (RFC 9112, section 7). llhttp takes a tab behind a coding for a part of its name.
    private func isChunked(_ value: Range<Int>, _ bytes: Span<UInt8>) -> Bool {
        var end = value.upperBound
        while bytes[end] == HTTPByte.space { end += 1 }
        return bytes[end] == HTTPByte.carriageReturn && bytes.isEqual(value, ignoringCase: "chunked")
    }

    private func number(_ digits: Range<Int>, _ bytes: Span<UInt8>) throws(HTTPRefusal) -> Int {
        guard !digits.isEmpty, digits.count <= Self.lengthDigits else { throw .length }
        var number = 0
        for at in digits {
            let (tens, isTooBig) = number.multipliedReportingOverflow(by: 10)
            let (sum, isTooBigNow) = tens.addingReportingOverflow(Int(bytes[at]) - Int(UInt8(ascii: "0")))
            guard HTTPByte.isDigit(bytes[at]), !isTooBig, !isTooBigNow else { throw .length }
            number = sum
        }
        return number
    }
}

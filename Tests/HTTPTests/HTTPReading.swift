import HTTP

/// What a head is read as, in a form that can be compared.
struct ReadHead: Equatable {
    let method, target, path: String
    let query, fields: [[String]]
    let body: HTTPBodyFraming
    let isHTTP10, keepsAlive, expectsContinue: Bool

    init(_ head: HTTPHead) {
        (method, target, path) = (head.method, head.target, head.path)
        query = head.query.map { [$0.name, $0.value] }
        fields = head.fields.map { [$0.name, $0.value] }
        body = head.body
        (isHTTP10, keepsAlive, expectsContinue) = (head.isHTTP10, head.keepsAlive, head.expectsContinue)
    }

    /// The same head, as a careful client writes it.
    var canonical: [UInt8] {
        let lines = ["\(method) \(target) HTTP/1.\(isHTTP10 ? 0 : 1)"] + fields.map { "\($0[0]): \($0[1])" }
        return Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8)
    }
}

enum ReadProgress: Equatable {
    case incomplete
    case complete(ReadHead, length: Int)
    case refused(HTTPRefusal)

    init(_ progress: HTTPHeadProgress) {
        switch progress {
        case .incomplete: self = .incomplete
        case .complete(let head, let length): self = .complete(ReadHead(head), length: length)
        case .refused(let refusal): self = .refused(refusal)
        }
    }

    var refusal: HTTPRefusal? {
        guard case .refused(let refusal) = self else { return nil }
        return refusal
    }

    var head: ReadHead? {
        guard case .complete(let head, _) = self else { return nil }
        return head
    }
}

/// Reads a head that arrives in pieces, until there is a result.
/// - Parameter arrivals: how many bytes are there at each call, rising.
func readHead(_ bytes: [UInt8], arrivals: some Sequence<Int>, limits: HTTPLimits = HTTPLimits()) -> ReadProgress {
    var parser = HTTPHeadParser(limits: limits)
    for count in arrivals {
        let progress = bytes.withUnsafeBytes {
            ReadProgress(parser.parse(UnsafeRawBufferPointer(rebasing: $0[..<count])))
        }
        if progress != .incomplete { return progress }
    }
    return .incomplete
}

func readHead(_ bytes: [UInt8], limits: HTTPLimits = HTTPLimits()) -> ReadProgress {
    readHead(bytes, arrivals: CollectionOfOne(bytes.count), limits: limits)
}

func readHead(_ text: String, limits: HTTPLimits = HTTPLimits()) -> ReadProgress {
    readHead(Array(text.utf8), limits: limits)
}

/// What became of a body.
struct ReadBody: Equatable {
    var content: [UInt8] = []
    var consumed = 0
    var progress = HTTPBodyProgress.incomplete
}

/// Reads a body that arrives in pieces.
/// - Parameter cuts: where one piece ends and the next begins, rising.
func readBody(_ bytes: [UInt8], _ framing: HTTPBodyFraming, cuts: some Sequence<Int> = []) -> ReadBody {
    var decoder = HTTPBodyDecoder(framing)
    var read = ReadBody()
    for end in Array(cuts) + [bytes.count] {
        bytes.withUnsafeBytes {
            let piece = UnsafeRawBufferPointer(rebasing: $0[read.consumed..<end])
            let (consumed, progress) = decoder.decode(piece, into: &read.content)
            read.consumed += consumed
            read.progress = progress
        }
        if read.progress != .incomplete { break }
    }
    return read
}

import CHiredis

/// Parses replies of Redis with hiredis' reader, whose callbacks build Swift values: each string is copied once from
/// the reader's buffer, and no tree of C objects is made.
///
/// The peer has no influence on memory: anything larger than `Bounds` is a protocol error, and so is anything that is
/// not RESP2. After an error, a `ReplyReader` must not be used again. Confined to one thread.
final class ReplyReader {
    struct Bounds {
        /// Bytes in one string.
        var bulk = 16 << 20
        /// Bytes in all strings of one reply.
        var reply = 64 << 20
        /// Values in one reply.
        var elements = 1 << 20
        /// Nesting of arrays.
        var depth = 6
        /// Bytes in a line: a status, an error or a number.
        static let line = 64 << 10
    }

    /// Part of a reply, in the order of the wire.
    private enum Node {
        case value(RedisValue)
        case array(Int)
    }

    /// After each reply, hiredis moves its unparsed bytes to the front. So it gets pieces that are small compared with the caches.
    static let pieceSize = 16 << 10
    /// The stand-in for a value; hiredis only checks that there is one.
    private static var object: UnsafeMutableRawPointer? { UnsafeMutableRawPointer(bitPattern: 1) }

    private let bounds: Bounds
    private let reader: UnsafeMutablePointer<redisReader>
    private let functions: UnsafeMutablePointer<redisReplyObjectFunctions>
    private var nodes: [Node] = []
    private var size = 0
    private var refusal: String?

    init(bounds: Bounds = Bounds()) {
        self.bounds = bounds
        functions = .allocate(capacity: 1)
        functions.initialize(to: Self.callbacks)
        guard let reader = redisReaderCreateWithFunctions(functions) else { preconditionFailure("no memory left") }
        self.reader = reader
        // Keeps enough of its buffer for a batch, instead of allocating it for each.
        reader.pointee.maxbuf = 256 << 10
        reader.pointee.privdata = Unmanaged.passUnretained(self).toOpaque()
    }

    deinit {
        redisReaderFree(reader)
        functions.deallocate()
    }

    /// Takes received bytes, at most `pieceSize`. All replies must be taken out before the next piece.
    func feedBytes(_ bytes: UnsafeRawBufferPointer) throws(RedisFailure) {
        guard let start = bytes.baseAddress else { return }
        if redisReaderFeed(reader, start.assumingMemoryBound(to: CChar.self), bytes.count) != REDIS_OK {
            throw makeFailure()
        }
    }

    /// The next complete reply; nil if more bytes are needed.
    func nextReply() throws(RedisFailure) -> RedisValue? {
        var reply: UnsafeMutableRawPointer?
        guard redisReaderGetReply(reader, &reply) == REDIS_OK else { throw makeFailure() }
        guard reply != nil else {
            try checkWhatWaits()
            return nil
        }
        var index = 0
        let value = assembleValue(&index)
        nodes.removeAll(keepingCapacity: nodes.count <= 4096)
        size = 0
        return value
    }

    /// hiredis buffers a string until it is complete, whatever its announced length.
    private func checkWhatWaits() throws(RedisFailure) {
        let waiting = reader.pointee.len - reader.pointee.pos
        guard waiting > Bounds.line else { return }
        let isString = roost_reader_type(reader) == REDIS_REPLY_STRING
        if !isString || waiting > bounds.bulk + 64 { throw .protocolError("it sends more in one piece than it may") }
    }

    private func makeFailure() -> RedisFailure {
        if let refusal { return .protocolError(refusal) }
        // A callback that refuses; see CHiredis.
        if reader.pointee.err == REDIS_ERR_OOM { return .protocolError("it sends a value that is no RESP2") }
        let text = withUnsafeBytes(of: reader.pointee.errstr) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
        return .protocolError(text)
    }

    /// Leaves `index` after the value's last node.
    private func assembleValue(_ index: inout Int) -> RedisValue {
        let node = nodes[index]
        index += 1
        switch node {
        case .value(let value): return value
        case .array(let count):
            var elements: [RedisValue] = []
            elements.reserveCapacity(count)
            for _ in 0..<count { elements.append(assembleValue(&index)) }
            return .array(elements)
        }
    }

    /// - Returns: the stand-in for the value, or nil to make hiredis stop.
    private func addNode(_ node: Node, size: Int = 0) -> UnsafeMutableRawPointer? {
        self.size += size
        guard nodes.count < bounds.elements, self.size <= bounds.reply else {
            refusal = "it sends a reply that is too large"
            return nil
        }
        nodes.append(node)
        return Self.object
    }

    private func addString(
        _ type: Int32, _ start: UnsafeMutablePointer<CChar>?, _ count: Int
    ) -> UnsafeMutableRawPointer? {
        guard count <= bounds.bulk else {
            refusal = "it sends a string that is too large"
            return nil
        }
        let bytes = UnsafeRawBufferPointer(start: start, count: count)
        let value: RedisValue
        switch type {
        case REDIS_REPLY_STATUS: value = .status(String(decoding: bytes, as: UTF8.self))
        case REDIS_REPLY_ERROR: value = .error(String(decoding: bytes, as: UTF8.self))
        case REDIS_REPLY_STRING: value = .bytes([UInt8](bytes))
        default: return nil
        }
        return addNode(.value(value), size: count)
    }

    private func addArray(_ count: Int, in parent: UnsafeMutablePointer<redisReadTask>?) -> UnsafeMutableRawPointer? {
        var depth = 1
        var outer = parent
        while let task = outer {
            depth += 1
            outer = task.pointee.parent
        }
        guard depth <= bounds.depth, count <= bounds.elements - nodes.count else {
            refusal = depth > bounds.depth ? "it sends arrays too deep" : "it sends a reply that is too large"
            return nil
        }
        return addNode(.array(count))
    }

    private static func taskOwner(_ task: UnsafePointer<redisReadTask>?) -> ReplyReader? {
        guard let owner = task?.pointee.privdata else { return nil }
        return Unmanaged<ReplyReader>.fromOpaque(owner).takeUnretainedValue()
    }

    private static let callbacks = roost_reply_functions(
        { task, start, count in
            guard let task else { return nil }
            return ReplyReader.taskOwner(task)?.addString(task.pointee.type, start, count)
        },
        { task, count in
            guard let task, task.pointee.type == REDIS_REPLY_ARRAY else { return nil }
            return ReplyReader.taskOwner(task)?.addArray(Int(clamping: count), in: task.pointee.parent)
        },
        { task, number in ReplyReader.taskOwner(task)?.addNode(.value(.integer(number))) },
        { task in ReplyReader.taskOwner(task)?.addNode(.value(.null)) },
        { _ in })
}

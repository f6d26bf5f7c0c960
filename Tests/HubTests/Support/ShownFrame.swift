import Wire

/// A frame taken apart by a reader that shares no code with its builder.
struct ShownFrame {
    enum Defect: Error { case header, opcode, kind4 }

    let isText: Bool
    let payload: [UInt8]

    init(_ bytes: [UInt8]) throws {
        guard bytes.count >= 2, bytes[0] & 0xF0 == 0x80, bytes[1] < 0x80 else { throw Defect.header }
        var (length, header) = (Int(bytes[1]), 2)
        if length >= 126 {
            let count = length == 126 ? 2 : 8
            guard bytes.count >= 2 + count else { throw Defect.header }
            length = bytes[2..<(2 + count)].reduce(0) { $0 << 8 | Int($1) }
            header = 2 + count
            guard length >= (count == 2 ? 126 : 65_536) else { throw Defect.header }
        }
        guard bytes.count == header + length else { throw Defect.header }
        guard [1, 2].contains(bytes[0] & 15) else { throw Defect.opcode }
        isText = bytes[0] & 15 == 1
        payload = Array(bytes[header...])
    }

    /// The parts of a frame of kind 4.
    struct Kind4 {
        let topic: String
        let event: String
        let metadata: String
        let isJSON: Bool
        let payload: ArraySlice<UInt8>
    }

    func kind4() throws -> Kind4 {
        guard !isText, payload.count >= 5, payload[0] == 4, payload[4] < 2 else { throw Defect.kind4 }
        let ends = payload[1...3].reduce(into: [5]) { $0.append(($0.last ?? 0) + Int($1)) }
        guard payload.count >= ends[3] else { throw Defect.kind4 }
        func text(_ part: Int) -> String { String(decoding: payload[ends[part]..<ends[part + 1]], as: UTF8.self) }
        return Kind4(
            topic: text(0), event: text(1), metadata: text(2), isJSON: payload[4] == 1, payload: payload[ends[3]...])
    }
}

extension Frame {
    var isPing: Bool { bytes.first == 0x89 }

    /// Text frames as their text, binary ones as `#4 topic event encoding payload`, events with `⏎` for the ends of lines.
    func shown() throws -> String {
        // Of an HTTP answer without chunks.
        if let first = bytes.first, first < 0x80 {
            return String(decoding: bytes, as: UTF8.self).replacing("\n", with: "⏎")
        }
        if isPing { return "ping \(String(decoding: bytes.dropFirst(2), as: UTF8.self))" }
        let frame = try ShownFrame(bytes)
        if frame.isText { return String(decoding: frame.payload, as: UTF8.self) }
        let parts = try frame.kind4()
        let payload = parts.isJSON ? String(decoding: parts.payload, as: UTF8.self) : "\(Array(parts.payload))"
        return "#4 \(parts.topic) \(parts.event) \(parts.isJSON ? "json" : "raw") \(payload)"
    }
}

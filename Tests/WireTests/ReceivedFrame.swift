import Wire

/// A WebSocket frame taken apart by a reader that shares no code with `Frame`.
struct ReceivedFrame {
    enum Defect: Error { case tooShort, notFinal, masked, notShortest, wrongLength }

    let opcode: UInt8
    let payload: [UInt8]
    let headerCount: Int

    init(_ bytes: [UInt8]) throws {
        guard bytes.count >= 2 else { throw Defect.tooShort }
        guard bytes[0] & 0xF0 == 0x80 else { throw Defect.notFinal }
        guard bytes[1] & 0x80 == 0 else { throw Defect.masked }
        var length = Int(bytes[1])
        var header = 2
        if length == 126 {
            header = 4
            length = Int(bytes[2]) * 256 + Int(bytes[3])
            guard length >= 126 else { throw Defect.notShortest }
        } else if length == 127 {
            header = 10
            length = bytes[2..<10].reduce(0) { $0 * 256 + Int($1) }
            guard length >= 65_536 else { throw Defect.notShortest }
        }
        guard bytes.count == header + length else { throw Defect.wrongLength }
        opcode = bytes[0] & 15
        payload = Array(bytes[header...])
        headerCount = header
    }

    var text: String { String(decoding: payload, as: UTF8.self) }
}

extension Frame {
    /// The text of a text frame whose header is right.
    func text() throws -> String {
        let received = try ReceivedFrame(bytes)
        return received.opcode == 1 ? received.text : "opcode \(received.opcode)"
    }
}

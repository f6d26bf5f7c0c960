import Streams
import Wire

/// Frames for members of a stream's channel: broadcasts of the event `stream` (DESIGN, "The contract").
enum StreamFrames {
    /// The maximum bytes of a stream in one frame, except for a single larger message: Python clients accept no more
    /// than a mebibyte.
    static let bytes = 262_144

    struct News {
        let payload: [UInt8]
        /// The member's offset after it.
        let end: Int
        /// The stream's status; nil if more of it exists already.
        let status: StreamStatus?
    }

    /// Returns what follows an offset.
    ///
    /// - Parameters:
    ///   - offset: an offset from which reading may begin; any other is replaced by the earliest that is kept.
    ///   - known: the status that the member was last told.
    static func news(
        of stream: StreamBuffer, _ snapshot: StreamSnapshot, from offset: Int, knowing known: StreamStatus?
    ) -> News? {
        let start = StreamPiece(of: stream, in: snapshot, from: offset, most: 1) == nil ? snapshot.start : offset
        guard let piece = StreamPiece(of: stream, in: snapshot, from: start, most: bytes) else { return nil }
        let status = piece.end == snapshot.end ? snapshot.status : nil
        let payload = JSONWriter.object { facts in
            facts.writeMember("id", snapshot.id.text)
            facts.writeMember("at", start)
            // Earlier bytes are no longer kept.
            if start == snapshot.start, start > 0, start != offset { facts.writeMember("skipped", true) }
            if !piece.isEmpty || known == nil { writeContent(piece, snapshot.configuration.content, &facts) }
            facts.writeMember("next", piece.end)
            if let status, status != known { self.writeStatus(status, &facts) }
        }
        return News(payload: payload, end: piece.end, status: status)
    }

    /// Returns the payload that announces a deleted stream.
    static func gonePayload(_ id: StreamID) -> [UInt8] {
        JSONWriter.object { facts in
            facts.writeMember("id", id.text)
            facts.writeMember("status", "deleted")
        }
    }

    /// In version 2 a binary frame, which has half of the text frame's overhead around a token.
    static func frame(_ payload: [UInt8], _ version: ProtocolVersion, in channel: LocalChannel) -> Frame? {
        let broadcast = UserBroadcast(event: ChannelStream.event, encoding: .json, payload: payload[...], metadata: nil)
        return BroadcastMessage.user(broadcast).frame(version, in: channel, isBehindPosition: true)
    }

    private static func writeContent(_ piece: StreamPiece, _ content: StreamContent, _ facts: inout JSONWriter) {
        switch content {
        case .text: facts.writeMember("delta", String(decoding: piece.bytes, as: UTF8.self))
        case .json: facts.writeMember("messages", json: piece.body)
        case .binary:
            var text: [UInt8] = []
            Base64.append(piece.bytes, to: &text)
            facts.writeMember("base64", String(decoding: text, as: UTF8.self))
        }
    }

    private static func writeStatus(_ status: StreamStatus, _ facts: inout JSONWriter) {
        switch status {
        case .open: facts.writeMember("status", "open")
        case .stalled: facts.writeMember("status", "stalled")
        case .ended(let ending):
            facts.writeMember("status", ending.reason.rawValue)
            if let row = ending.row { facts.writeMember("row", json: row) }
        }
    }
}

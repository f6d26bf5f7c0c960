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
            facts.member("id", snapshot.id.text)
            facts.member("at", start)
            // Earlier bytes are no longer kept.
            if start == snapshot.start, start > 0, start != offset { facts.member("skipped", true) }
            if !piece.isEmpty || known == nil { content(piece, snapshot.configuration.content, &facts) }
            facts.member("next", piece.end)
            if let status, status != known { self.status(status, &facts) }
        }
        return News(payload: payload, end: piece.end, status: status)
    }

    /// Returns the payload that announces a deleted stream.
    static func gone(_ id: StreamID) -> [UInt8] {
        JSONWriter.object { facts in
            facts.member("id", id.text)
            facts.member("status", "deleted")
        }
    }

    /// In version 2 a binary frame, which has half of the text frame's overhead around a token.
    static func frame(_ payload: [UInt8], _ version: ProtocolVersion, in channel: LocalChannel) -> Frame? {
        let broadcast = UserBroadcast(event: ChannelStream.event, encoding: .json, payload: payload[...], metadata: nil)
        return BroadcastMessage.user(broadcast).frame(version, in: channel, isBehindPosition: true)
    }

    private static func content(_ piece: StreamPiece, _ content: StreamContent, _ facts: inout JSONWriter) {
        switch content {
        case .text: facts.member("delta", String(decoding: piece.bytes, as: UTF8.self))
        case .json: facts.member("messages", json: piece.body)
        case .binary:
            var text: [UInt8] = []
            Base64.append(piece.bytes, to: &text)
            facts.member("base64", String(decoding: text, as: UTF8.self))
        }
    }

    private static func status(_ status: StreamStatus, _ facts: inout JSONWriter) {
        switch status {
        case .open: facts.member("status", "open")
        case .stalled: facts.member("status", "stalled")
        case .ended(let ending):
            facts.member("status", ending.reason.rawValue)
            if let row = ending.row { facts.member("row", json: row) }
        }
    }
}

import Streams
import Wire

/// What members of a stream's channel are sent: broadcasts of the event `stream` (DESIGN, "The contract").
enum StreamFrames {
    /// Bytes of a stream in one frame, but for a single message that is larger: Python clients take no more than a mebibyte.
    static let bytes = 262_144

    struct News {
        let payload: [UInt8]
        /// Where the reader is behind it.
        let end: Int
        /// How the stream stood; nil where there is more of it already.
        let status: StreamStatus?
    }

    /// What follows behind an offset.
    ///
    /// - Parameters:
    ///   - offset: from which reading may begin; one from which it may not is taken for the earliest that is kept.
    ///   - known: what the reader was told last of how the stream stands.
    static func news(
        of stream: StreamBuffer, _ snapshot: StreamSnapshot, from offset: Int, knowing known: StreamStatus?
    ) -> News? {
        let start = StreamPiece(of: stream, in: snapshot, from: offset, most: 1) == nil ? snapshot.start : offset
        guard let piece = StreamPiece(of: stream, in: snapshot, from: start, most: bytes) else { return nil }
        let status = piece.end == snapshot.end ? snapshot.status : nil
        let payload = JSONWriter.object { facts in
            facts.member("id", snapshot.id.text)
            facts.member("at", start)
            // What stood before is not kept any more.
            if start == snapshot.start, start > 0, start != offset { facts.member("skipped", true) }
            if !piece.isEmpty || known == nil { content(piece, snapshot.configuration.content, &facts) }
            facts.member("next", piece.end)
            if let status, status != known { self.status(status, &facts) }
        }
        return News(payload: payload, end: piece.end, status: status)
    }

    /// What is said of a stream that was deleted.
    static func gone(_ id: StreamID) -> [UInt8] {
        JSONWriter.object { facts in
            facts.member("id", id.text)
            facts.member("status", "deleted")
        }
    }

    /// In version 2 a binary frame, which has half of the text's bytes around a token.
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

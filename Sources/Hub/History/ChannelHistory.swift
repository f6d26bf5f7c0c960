import Wire

/// One loop's part in a channel whose messages are kept.
final class ChannelHistory {
    /// See `HistoryID`.
    let history: UInt64
    /// All up to it was passed on here.
    var shown: Int
    /// Who asked for history and hears the channel's broadcasts. They are not in `Channel.members`.
    var audience = Audience()
    /// Those whose join is not answered yet included.
    var memberCount = 0
    /// Of messages that are sent again, for all who come back at the same time; emptied every second.
    private var frames: [FrameKey: Frame] = [:]

    private struct FrameKey: Hashable {
        let position: Int
        let version: ProtocolVersion
    }

    init(history: UInt64, shown: Int) {
        self.history = history
        self.shown = shown
    }

    /// A kept message as it is sent again. Nil where the version has no form for it.
    func replay(_ message: KeptMessage, _ version: ProtocolVersion, in channel: Channel) -> Frame? {
        let key = FrameKey(position: message.position, version: version)
        if let frame = frames[key] { return frame }
        let meta = HistoryMeta(id: HistoryID(history: history, position: message.position), isReplay: true)
        let frame = message.broadcast.frame(version, with: meta, in: channel)
        frames[key] = frame
        return frame
    }

    func forgetFrames() {
        if !frames.isEmpty { frames = [:] }
    }
}

/// One member's part in it.
final class MemberHistory {
    let request: HistoryRequest
    /// Live members that may be dead ones of the same client, and are asked. Nil once that is decided.
    var doubts: [ClientTrace]?
    /// The hub keeps nothing: the member is served like any other, and told.
    let isOff: Bool
    /// Its position in the audience; nil before it has its seat.
    var seat: Int32?
    /// Another one where its token is changed.
    var session: HistorySession
    var isAnswered = false

    init(request: HistoryRequest, session: HistorySession, isOff: Bool) {
        self.request = request
        self.session = session
        self.isOff = isOff
    }
}

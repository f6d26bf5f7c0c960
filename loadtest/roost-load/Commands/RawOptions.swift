import ArgumentParser

/// Frames for servers that speak another protocol than Phoenix.
struct RawOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "What a subscriber says, instead of a join; may be repeated.",
            discussion: """
                {channel} is a channel's number; \\r, \\n, \\\\ and \\xNN are escapes. A message is --publish-prefix, \
                --size bytes with the stamp, --publish-suffix.
                """, valueName: "frame"))
    var subscribeFrame: [String] = []

    @Option(help: ArgumentHelp("How many messages answer that.", valueName: "count"))
    var acks = 0

    @Option(help: ArgumentHelp("What a publisher says first; may be repeated.", valueName: "frame"))
    var publisherFrame: [String] = []

    @Option(help: ArgumentHelp("How many messages answer that.", valueName: "count"))
    var publisherAcks = 0

    @Option(help: ArgumentHelp("What stands before a message's text.", valueName: "text"))
    var publishPrefix: String?

    @Option(help: ArgumentHelp("What stands behind it.", valueName: "text"))
    var publishSuffix = ""

    @Flag(help: "Frames are binary.")
    var binaryFrames = false

    @Option(help: ArgumentHelp("The WebSocket's subprotocol, as mqtt.", valueName: "name"))
    var subprotocol: String?

    func validate() throws {
        guard publishPrefix != nil || subscribeFrame.isEmpty && publisherFrame.isEmpty else {
            throw ValidationError("Where frames are given, --publish-prefix is, too; it may be empty.")
        }
        guard acks >= 0, publisherAcks >= 0 else {
            throw ValidationError("--acks and --publisher-acks are not negative.")
        }
    }

    /// Nil where Phoenix is spoken.
    var `protocol`: RawProtocol? {
        publishPrefix.map {
            RawProtocol(
                subscribeFrames: subscribeFrame, greetingFrames: publisherFrame, acknowledgements: acks,
                publisherAcknowledgements: publisherAcks, prefix: $0, suffix: publishSuffix, isBinary: binaryFrames)
        }
    }
}

/// Streams of replies: their storage, their size limits, and the end of streams whose producer is gone.
extension Setting {
    static let streamsDirectory = Setting(
        "streams.directory", .path, standard: nil,
        "A folder in which the hub keeps streams, one file for each; it is created if its parent exists. A stream "
            + "survives the end of the hub and kill -9. Each hub needs a folder of its own. With cluster.url each hub "
            + "has all streams there. When it is not set, the hub serves no streams."
    )

    static let streamsSync = Setting(
        "streams.sync", .choice(["none", "close", "always"]), standard: .text("none"),
        "When what was appended has to be on the disk, so that it survives a crash of the machine as well: none leaves "
            + "it to the kernel, close waits for the disk when a stream ends, always before every answer.")

    static let streamsOnClose = Setting(
        "streams.on_close", .closes, standard: nil,
        "A statement that writes a stream into your table when its producer closes it: $1 its name, $2 its whole "
            + "content (JSON as an array, bytes as bytea is written), $3 complete, $4 and $5 when it began and ended; "
            + "it ends with RETURNING. It runs with the role and the claims of whoever closes, under row level "
            + "security. Row and close are committed together, or neither is. Or a list of {stream, statement, when, "
            + "role}: the first entry whose pattern and whose when (complete, cancelled, aborted) fit counts.")

    static let streamsCloseWithin = Setting(
        "streams.close_within", .integer(1...604_800), standard: .integer(3600), unit: "seconds",
        "How long a stream is kept whose row cannot be written, because its statement fails or the database is away. "
            + "Then it ends without its row, and the log says so as an error.")

    static let streamsBounds = Setting(
        "streams.bounds", .entries, standard: nil,
        "Bounds of some streams, as a list of {stream, bytes, keep, seconds}; the first entry whose pattern fits counts, "
            + "and where none does, the next two settings. keep: newest drops what is older in place of refusing appends, "
            + "and with seconds what was appended longer ago; it takes a hub alone.")

    static let streamsRoutes = Setting(
        "streams.routes", .words(from: nil), standard: nil,
        "Your application's own paths at which a stream is read as plain server-sent events, with commas between them: "
            + "/reply=reply/{conversation} serves /reply?conversation=1 from the stream reply/1. ;event=type behind it "
            + "takes the event's name from the member type of each message. ;turns is for a name that is opened again for each "
            + "turn of a conversation: whoever comes when a turn has ended waits for the next one. ;forward=URL passes a POST on to "
            + "your backend, whose answer is the next turn; with ;cancel it ends when the app closes it.")

    static let streamsForwardSecret = Setting(
        "streams.forward_secret", .secret(minimumBytes: 24), standard: nil, isSecret: true,
        "The key that requests are signed with which a route passes on to your backend (;forward=URL in streams.routes): "
            + "whsec_ and the base64 of 24 bytes or more. docs/streams.md has how a backend checks it.")

    static let streamsForwardTimeout = Setting(
        "streams.forward_timeout", .integer(1...600), standard: .integer(30), unit: "seconds",
        "How long a backend may be silent before its answer to such a request begins; then the reply ends with "
            + "streams.forward_error.")

    static let streamsForwardError = Setting(
        "streams.forward_error", .json, standard: .text(#"{"type":"error","error":"$reason"}"#),
        "What the app is told when such a request has no whole answer: an event in its own shape, a JSON value. $reason in "
            + "it is unreachable, timeout, broken, refused, invalid, row or restarting. A backend that refuses with a JSON "
            + "object of its own is quoted instead.")

    static let streamBytes = Setting(
        "streams.bytes", .integer(1024...268_435_456), standard: .integer(4_194_304), unit: "bytes",
        "How large a stream of text or JSON may grow; an append beyond that is refused with HTTP 413. Speech of 64 "
            + "kbit/s as base64 in JSON takes 4 MiB in six minutes.")

    static let streamBinaryBytes = Setting(
        "streams.binary_bytes", .integer(1024...268_435_456), standard: .integer(16_777_216), unit: "bytes",
        "The same for a stream of any other content, such as speech.")

    static let streamTotalBytes = Setting(
        "streams.total_bytes", .integer(1_048_576...68_719_476_736), standard: .integer(268_435_456), unit: "bytes",
        "How much all streams may have together, in memory and in the folder. When it is used up, streams that have "
            + "ended go first; an append that still does not fit is refused with HTTP 503.")

    static let streamCount = Setting(
        "streams.count", .integer(1...1_000_000), standard: .integer(10_000), unit: "streams",
        "How many streams there may be. Beyond that, streams that have ended go first; open ones stay, and a new one "
            + "is refused. Of those that ended, the streams of whoever has most go first. A quarter is kept for streams "
            + "of the role service_role, and so it is with streams.total_bytes.")

    static let streamBytesPerUser = Setting(
        "streams.bytes_per_user", .integer(1024...68_719_476_736), standard: .integer(67_108_864), unit: "bytes",
        "How much the streams that one user made may have together. His own that have ended go first; what still does "
            + "not fit is refused with HTTP 429. Tokens that name no user count together, by their role; those of "
            + "service_role have no such bound.")

    static let streamCountPerUser = Setting(
        "streams.count_per_user", .integer(1...1_000_000), standard: .integer(500), unit: "streams",
        "The same in streams.")

    static let streamKeepAfterEnd = Setting(
        "streams.keep_after_end", .integer(0...604_800), standard: .integer(300), unit: "seconds",
        "How long a stream can be read after it ended, unless it was made with a lifetime of its own.")

    static let streamStalledAfter = Setting(
        "streams.stalled_after", .integer(1...86_400), standard: .integer(15), unit: "seconds",
        "How long a stream's producer may be silent before its watchers are told that it stalled; they are told at "
            + "once when the producer's connection breaks. It applies to producers that name themselves and to those "
            + "that hold a connection.")

    static let streamAbortedAfter = Setting(
        "streams.aborted_after", .integer(1...604_800), standard: .integer(60), unit: "seconds",
        "How long a producer may be silent before the stream ends as aborted and its producer may not go on.")

    static let streamAbandonedAfter = Setting(
        "streams.abandoned_after", .integer(0...604_800), standard: .integer(3600), unit: "seconds",
        "The same for streams whose producer the hub does not know: those written by short requests without a name. 0: "
            + "never.")
}

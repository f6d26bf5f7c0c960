/// Streams of replies: where they are kept, how large they may grow, and when one whose producer is gone ends.
extension Setting {
    static let streamsDirectory = Setting(
        "streams.directory", .path, standard: nil,
        "A folder in which the hub keeps streams, a file for each; it is made if what it stands in is there. A stream "
            + "outlives the hub's end, and kill -9. One folder for each hub. With cluster.url each hub has all streams there. When it is "
            + "not set, the hub serves no streams."
    )

    static let streamsSync = Setting(
        "streams.sync", .choice(["none", "close", "always"]), standard: .text("none"),
        "When what was appended has to be on the disk, so that it outlives a crash of the machine, too: none leaves it to "
            + "the kernel, close waits for the disk when a stream ends, always before every answer.")

    static let streamsOnClose = Setting(
        "streams.on_close", .query, standard: nil,
        "A statement that writes a stream that its producer closes into your table: $1 its name, $2 all that it has (of JSON an "
            + "array, bytes as bytea is written), $3 complete, $4 and $5 when it began and ended; it ends with RETURNING. It runs "
            + "with the role and the claims of whoever closes, under row level security. Row and close are committed together, or "
            + "neither is.")

    static let streamsRoutes = Setting(
        "streams.routes", .words(from: nil), standard: nil,
        "Paths of your application's own at which a stream is read as plain server-sent events, with commas between them: "
            + "/reply=reply/{conversation} serves /reply?conversation=1 from the stream reply/1. ;event=type behind it takes the "
            + "event's name from the member type of each message.")

    static let streamBytes = Setting(
        "streams.bytes", .integer(1024...268_435_456), standard: .integer(1_048_576), unit: "bytes",
        "How large a stream of text or JSON may grow; an append beyond that is refused with HTTP 413.")

    static let streamBinaryBytes = Setting(
        "streams.binary_bytes", .integer(1024...268_435_456), standard: .integer(16_777_216), unit: "bytes",
        "The same for a stream of any other content, such as speech.")

    static let streamTotalBytes = Setting(
        "streams.total_bytes", .integer(1_048_576...68_719_476_736), standard: .integer(268_435_456), unit: "bytes",
        "How much all streams may have together, in memory and in the folder. Where it is used up, streams that ended go "
            + "first; an append that still does not fit is refused with HTTP 503.")

    static let streamCount = Setting(
        "streams.count", .integer(1...1_000_000), standard: .integer(10_000), unit: "streams",
        "How many streams there may be. Beyond that, streams that ended go first; open ones stay, and a new one is refused."
    )

    static let streamKeepAfterEnd = Setting(
        "streams.keep_after_end", .integer(0...604_800), standard: .integer(300), unit: "seconds",
        "How long a stream can be read after it ended, unless it was made with a lifetime of its own.")

    static let streamStalledAfter = Setting(
        "streams.stalled_after", .integer(1...86_400), standard: .integer(15), unit: "seconds",
        "After so long a silence of a stream's producer its watchers are told that it stalled; at once when the "
            + "producer's connection broke. Producers that name themselves count, and those that hold a connection.")

    static let streamAbortedAfter = Setting(
        "streams.aborted_after", .integer(1...604_800), standard: .integer(60), unit: "seconds",
        "After so long a silence the stream ends as aborted, and its producer may not go on.")

    static let streamAbandonedAfter = Setting(
        "streams.abandoned_after", .integer(0...604_800), standard: .integer(3600), unit: "seconds",
        "The same for streams whose producer the hub does not know: those written by short requests without a name. 0: "
            + "never.")
}

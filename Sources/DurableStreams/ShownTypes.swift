import Streams

extension StreamConfiguration {
    /// Types that a browser shows without running or drawing anything of theirs. All others are downloaded: there are more kinds of
    /// documents that run scripts than one would list (HTML, SVG, every XML by its style sheet, PDF, MHTML, parts of `multipart`).
    private static let shown: Set<String> = [
        "application/json", "application/x-ndjson", "text/plain", "text/csv", "text/markdown", "text/event-stream",
        "image/png", "image/jpeg", "image/gif", "image/webp", "image/avif",
    ]
    private static let shownKinds = ["audio/", "video/"]

    /// Of several types with commas between them a browser takes the last (Fetch, "extract a MIME type"): such a value is none of these.
    var isShownAsItIs: Bool {
        guard !contentType.utf8.contains(UInt8(ascii: ",")) else { return false }
        let type = contentType.prefix { $0 != ";" && $0 != " " && $0 != "\t" }
        return Self.shown.contains(String(type)) || Self.shownKinds.contains { type.hasPrefix($0) }
    }
}

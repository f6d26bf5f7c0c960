import Streams

extension StreamConfiguration {
    /// Types that a browser displays without running or drawing any of their content. All others are downloaded: more kinds of
    /// documents can run scripts than a list could name (HTML, SVG, any XML through its style sheet, PDF, MHTML, parts of `multipart`).
    private static let shown: Set<String> = [
        "application/json", "application/x-ndjson", "text/plain", "text/csv", "text/markdown", "text/event-stream",
        "image/png", "image/jpeg", "image/gif", "image/webp", "image/avif",
    ]
    private static let shownKinds = ["audio/", "video/"]

    /// Given several types separated by commas, a browser takes the last (Fetch, "extract a MIME type"): such a value
    /// never counts as one of these.
    var isShownAsItIs: Bool {
        guard !contentType.utf8.contains(UInt8(ascii: ",")) else { return false }
        let type = contentType.prefix { $0 != ";" && $0 != " " && $0 != "\t" }
        return Self.shown.contains(String(type)) || Self.shownKinds.contains { type.hasPrefix($0) }
    }
}

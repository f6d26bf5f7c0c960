import Wire

/// `roost stream read`: prints a stream's content and all that is appended.
///
/// Reads by long-polls, whose bodies are the stream's own bytes. An event stream would lose carriage returns, which end
/// a line there as line feeds do (WHATWG HTML, 9.2.6).
struct StreamPrinter {
    private let client: HubTransfer
    private let isOnce: Bool

    /// - Parameter isOnce: stops at the present end of the stream.
    init(_ client: HubTransfer, isOnce: Bool) {
        self.client = client
        self.isOnce = isOnce
    }

    /// Prints until the stream ends, or until the output is closed.
    ///
    /// - Throws: `RunFailure` if the stream cannot be read, or was not completed.
    func printStream() throws {
        var (offset, cursor) = ("-1", "")
        while true {
            let live = isOnce ? "" : "&live=long-poll\(cursor)"
            let page = try client.performRequest("GET", [], behind: "?offset=\(offset)\(live)")
            guard try printPage(page) else { return }
            let isUpToDate = client.headerValue("Stream-Up-To-Date") == "true"
            if isUpToDate, client.headerValue("Stream-Closed") == "true" {
                let ending = client.headerValue("Stream-Status") ?? "complete"
                guard ending == "complete" else { throw RunFailure("The stream ended: \(ending).", .refused) }
                return
            }
            if isOnce, isUpToDate { return }
            guard let next = client.headerValue("Stream-Next-Offset") else {
                throw RunFailure("What answers at --url does not serve streams: it names no offset.", .refused)
            }
            offset = next
            cursor = client.headerValue("Stream-Cursor").map { "&cursor=\($0)" } ?? ""
        }
    }

    /// Prints text and bytes unchanged, and JSON as one message per line.
    ///
    /// - Returns: false if the output is closed.
    private func printPage(_ page: [UInt8]) throws -> Bool {
        guard client.headerValue("Content-Type")?.hasPrefix("application/json") == true, !page.isEmpty else {
            return StandardOutput.write(page)
        }
        return try JSON(parsing: page).elements.allSatisfy { StandardOutput.write(Array($0.bytes) + [0x0A]) }
    }
}

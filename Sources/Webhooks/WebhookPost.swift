import CCurl
import Glibc

/// A POST by libcurl, on the calling thread.
enum WebhookPost {
    static func postBody(
        _ body: [UInt8], to url: String, _ headers: [String], _ requests: OpaquePointer, within limit: Duration
    ) -> WebhookAnswer {
        var problem = [CChar](repeating: 0, count: Int(ROOST_FETCH_PROBLEM_SIZE))
        let texts = headers.map { strdup($0) }
        defer { for text in texts { free(text) } }
        let pointers: [UnsafePointer<CChar>?] = texts.map { UnsafePointer($0) }
        let (seconds, attoseconds) = limit.components
        let milliseconds = Int(seconds) * 1000 + Int(attoseconds / 1_000_000_000_000_000)
        let status = roost_post(
            requests, url, pointers, pointers.count, body, body.count, max(1, milliseconds), &problem)
        guard status < 0 else { return .status(status) }
        return .problem(String(decoding: problem.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self))
    }
}

enum WebhookClock {
    /// Seconds since 1970.
    static func seconds() -> Int64 { Int64(time(nil)) }
}

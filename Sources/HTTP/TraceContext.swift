/// The names that a client's or proxy's tracing gives a request, for the hub's log: W3C Trace Context's `traceparent`,
/// and `sb-request-id`, which Supabase's SDKs send in `baggage` (supabase/sdk 29e402d, capabilities/realtime.yaml) and
/// gateways in a header.
///
/// Values of any other form are dropped, so that clients cannot write arbitrary text into the log.
package struct TraceContext: Sendable, Equatable {
    package let traceparent: String?
    package let requestID: String?

    private static let longestID = 64

    /// Nil if a request has neither.
    package init?(_ head: HTTPHead) {
        traceparent = head.field("traceparent").flatMap { Self.isTraceparent($0) ? $0 : nil }
        requestID = (head.field("sb-request-id") ?? head.field("baggage").flatMap { Self.requestID(inBaggage: $0) })
            .flatMap {
                Self.isID($0) ? $0 : nil
            }
        if traceparent == nil, requestID == nil { return nil }
    }

    /// Section 3.2 of the recommendation: version, trace ID, parent ID and flags in lower-case hexadecimal digits,
    /// neither ID all zeros.
    static func isTraceparent(_ text: String) -> Bool {
        let parts = text.utf8.split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
        guard parts.map(\.count) == [2, 32, 16, 2] else { return false }
        let isHexadecimal = parts.joined().allSatisfy { byte in
            (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
                || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(byte)
        }
        return isHexadecimal && !parts[0].elementsEqual("ff".utf8)
            && parts[1...2].allSatisfy { !$0.allSatisfy { $0 == UInt8(ascii: "0") } }
    }

    /// Finds the ID in a list `key=value;property, key=value` (W3C Baggage, section 3.3.1).
    private static func requestID(inBaggage list: String) -> String? {
        for entry in list.split(separator: ",") {
            let member = entry.prefix { $0 != ";" }
            guard let equals = member.firstIndex(of: "=") else { continue }
            let name = member[..<equals].filter { $0 != " " && $0 != "\t" }
            guard name.utf8.elementsEqual("sb-request-id".utf8) else { continue }
            return String(member[member.index(after: equals)...].filter { $0 != " " && $0 != "\t" })
        }
        return nil
    }

    private static func isID(_ text: String) -> Bool {
        let isShort = !text.isEmpty && text.utf8.count <= longestID
        return isShort
            && text.utf8.allSatisfy { byte in
                (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
                    || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20) || byte == UInt8(ascii: "-")
                    || byte == UInt8(ascii: "_")
            }
    }

    /// The fields for a log line.
    package var facts: [(name: String, value: String)] {
        [("traceparent", traceparent), ("request_id", requestID)].compactMap { name, value in value.map { (name, $0) } }
    }
}

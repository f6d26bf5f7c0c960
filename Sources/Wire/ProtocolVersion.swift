/// The serializer a client asked for with `vsn` in the URL.
package enum ProtocolVersion: Sendable, Equatable {
    /// Phoenix' first serializer: JSON objects, text only.
    case v1
    /// Phoenix' second: JSON arrays of five, and binary frames of kinds 3 (in) and 4 (out).
    case v2

    /// Reads `vsn` as the original does: absent means 1.0.0, else `~> 1.0.0` or `~> 2.0.0`. Nil where neither fits.
    package init?(vsn: String?) {
        guard let vsn else {
            self = .v1
            return
        }
        let parts = vsn.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3, parts[1] == "0", !parts[2].isEmpty,
            parts[2].utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) })
        else { return nil }
        switch parts[0] {
        case "1": self = .v1
        case "2": self = .v2
        default: return nil
        }
    }
}

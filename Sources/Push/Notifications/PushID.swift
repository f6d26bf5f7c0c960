import Signatures
import Wire

/// The id of one notification: APNs' `apns-id`, a lower-case UUID.
///
/// A notification keeps its id however often it is sent, so that a log, or APNs, can tell a repetition from a second notification.
package struct PushID: Hashable, Sendable {
    /// As `8-4-4-4-12` lower-case hexadecimal digits; APNs answers anything else with `BadMessageId`.
    package let text: String

    /// Makes a fresh id (RFC 9562, version 4).
    package init() {
        text = UUIDText.formatUUID(.random(in: .min ... .max), version: 4)
    }

    /// Makes the same id for the same name, on every hub and after every restart: the first 16 bytes of the name's SHA-256 as a UUID of
    /// version 8, which RFC 9562 provides for custom schemes (section 5.8).
    package init(named name: String) {
        let hash = HashFunction.sha256.hash(Array(name.utf8)).prefix(16)
        text = UUIDText.formatUUID(hash.reduce(0) { $0 << 8 | UInt128($1) }, version: 8)
    }

    /// Nil if `text` is not a UUID.
    package init?(_ text: String) {
        let lower = text.lowercased()
        let groups = lower.split(separator: "-", omittingEmptySubsequences: false)
        guard groups.map(\.utf8.count) == [8, 4, 4, 4, 12],
            groups.joined().utf8.allSatisfy({ UnicodeScalar($0).properties.isASCIIHexDigit })
        else { return nil }
        self.text = lower
    }
}

extension PushID: CustomStringConvertible {
    package var description: String { text }
}

package import Wire

/// A stream's name, as in the paths `/streams/NAME` and in the topic `stream:NAME`, by which policies know it.
///
/// One to 200 bytes of UTF-8 without control characters. Slashes are allowed between segments; no segment is empty, `.`
/// or `..`, and the last is not `cancel`, which is a request about the stream before it.
package struct StreamName: Hashable, Sendable {
    /// Compared by its bytes, as policies compare topics.
    package let name: Name

    package var text: String { name.text }

    package static let topicPrefix = "stream:"
    package static let longest = 200

    /// Nil if the text is not a valid name.
    package init?(_ text: String) {
        guard !text.isEmpty, text.utf8.count <= Self.longest, text.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
            return nil
        }
        let segments = text.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        guard !segments.contains(where: { $0.isEmpty || $0.elementsEqual(".".utf8) || $0.elementsEqual("..".utf8) }),
            segments.last?.elementsEqual("cancel".utf8) == false
        else { return nil }
        name = Name(text)
    }

    /// - Parameter topic: without the prefix `realtime:`.
    package init?(topic: some StringProtocol) {
        guard topic.utf8.starts(with: Self.topicPrefix.utf8) else { return nil }
        self.init(String(Substring(topic).utf8.dropFirst(Self.topicPrefix.utf8.count)) ?? "")
    }

    /// The value of `realtime.topic()` in policies.
    package var topic: String { Self.topicPrefix + text }
}

/// A message that is the same but for its stamp.
struct MessageTemplate {
    private let kind: OutgoingFrame.Kind
    private let head: [UInt8]
    private let tail: [UInt8]

    init(_ kind: OutgoingFrame.Kind, _ head: some Sequence<UInt8>, _ tail: some Sequence<UInt8>) {
        self.kind = kind
        self.head = Array(head)
        self.tail = Array(tail)
    }

    init(_ kind: OutgoingFrame.Kind, _ head: String, _ tail: String) { self.init(kind, head.utf8, tail.utf8) }

    /// - Parameter size: of the stamp with what fills it up, in bytes.
    func frame(_ stamp: [UInt8], size: Int = 0) -> [UInt8] {
        let padding = repeatElement(UInt8(ascii: "x"), count: max(0, size - stamp.count))
        return OutgoingFrame.make(kind, head + stamp + padding + tail)
    }
}

/// A message from one hub to another: a kind and its content.
///
/// As in `PeerMessage`, kinds never change their meaning, a hub skips unknown ones, and new fields go after the
/// existing ones. The kinds 1 and 2 are no longer available.
enum DirectPayload: Equatable {
    /// Belongs to a subject (`PeerSubject`); its answer has the same number.
    case question(id: UInt64, subject: UInt8, [UInt8])
    /// Nil if the hub has none, because it does not know the subject.
    case answer(id: UInt64, [UInt8]?)

    private enum Kind: UInt8 { case question = 3, answer }

    var encoded: [UInt8] {
        switch self {
        case .question(let id, let subject, let body):
            var out = RelayWriter(reserving: body.count + 24)
            out.appendByte(Kind.question.rawValue)
            out.appendNumber(id)
            out.appendByte(subject)
            out.appendData(body)
            return out.bytes
        case .answer(let id, let body):
            var out = RelayWriter(reserving: (body?.count ?? 0) + 24)
            out.appendByte(Kind.answer.rawValue)
            out.appendNumber(id)
            out.appendOptional(body)
            return out.bytes
        }
    }

    /// Nil for an unknown kind.
    init?(_ bytes: ArraySlice<UInt8>) throws(RelayReader.Malformed) {
        var fields = RelayReader(bytes)
        switch Kind(rawValue: try fields.readByte()) {
        case nil: return nil
        case .question:
            self = .question(id: try fields.readNumber(), subject: try fields.readByte(), Array(try fields.readData()))
        case .answer: self = .answer(id: try fields.readNumber(), try fields.readOptional().map { Array($0) })
        }
    }
}

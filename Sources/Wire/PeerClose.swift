/// What a peer's close frame says (RFC 6455, section 5.5.1), and what is answered to it.
package struct PeerClose: Sendable, Equatable {
    /// For the log and the metrics: 1005 stands for a frame without a code (section 7.1.5), 1002 for one that a peer must
    /// not send.
    package let code: UInt16
    /// The only frame that may follow: the peer's code, or why its frame is none.
    package let answer: Frame

    /// - Parameter payload: of the close frame.
    package init(_ payload: some Collection<UInt8>) {
        guard let high = payload.first else {
            self.init(code: 1005, answer: Frame(.close, count: 0) { _ in })
            return
        }
        let rest = payload.dropFirst()
        guard let low = rest.first else {
            self.init(failing: .protocolError, "a close frame needs a code of two bytes")
            return
        }
        let code = UInt16(high) << 8 | UInt16(low)
        guard Self.isAllowed(code) else {
            self.init(failing: .protocolError, "this close code may not be sent")
            return
        }
        guard String(validating: rest.dropFirst(), as: UTF8.self) != nil else {
            self.init(failing: .invalidData, "the reason is not UTF-8")
            return
        }
        self.init(code: code, answer: Frame(.close, count: 2) { $0 += [high, low] })
    }

    private init(failing code: CloseCode, _ reason: StaticString) {
        self.init(code: code.rawValue, answer: .close(code, reason: reason))
    }

    private init(code: UInt16, answer: Frame) {
        self.code = code
        self.answer = answer
    }

    /// Whether a code is of those that RFC 6455 and IANA name; from 3000 on a peer may send any number that it likes.
    package static func isRegistered(_ code: UInt16) -> Bool {
        switch code {
        case 1000...1003, 1005...1015: true
        default: false
        }
    }

    /// Section 7.4.2, and the codes that IANA has registered since. 1004, 1005, 1006 and 1015 never stand in a frame.
    private static func isAllowed(_ code: UInt16) -> Bool {
        switch code {
        case 1000...1003, 1007...1014, 3000...4999: true
        default: false
        }
    }
}

import Testing
import Wire

/// Kind 3: `3 J R T E M encoding join_ref ref topic event metadata payload` (wire-protocol A2).
@Suite struct BinaryClientFrameTests {
    private func read(_ bytes: [UInt8], _ version: ProtocolVersion = .v2) throws -> (ClientFrame, UserBroadcast) {
        let frame = try ClientFrame(binary: bytes[...], version: version)
        guard case .userBroadcast(let user) = frame.body else { throw ClientFrame.Malformed.unknownKind(3) }
        return (frame, user)
    }

    /// What realtime-js 2.112 was seen to send.
    static let verified: [UInt8] = [3, 1, 1, 0x0E, 6, 0, 1] + Array(#"68realtime:room1cursor{"x":1}"#.utf8)

    @Test func readsTheVerifiedExample() throws {
        let (frame, user) = try read(Self.verified)
        #expect(frame.joinRef.description == #""6""#)
        #expect(frame.ref.description == #""8""#)
        #expect(frame.topic == "realtime:room1")
        #expect(frame.event == "broadcast")
        #expect(user.event == "cursor")
        #expect(user.encoding == .json)
        #expect(Array(user.payload) == Array(#"{"x":1}"#.utf8))
        #expect(user.metadata == nil)
    }

    @Test func readsRawPayloadsAsTheyAre() throws {
        let (_, user) = try read([3, 0, 0, 1, 1, 0, 0] + Array("te".utf8) + [0, 0xFF, 0xC0])
        #expect(user.encoding == .raw)
        #expect(Array(user.payload) == [0, 0xFF, 0xC0])
    }

    @Test func emptyRefsAreNull() throws {
        let (frame, user) = try read([3, 0, 0, 0, 0, 0, 1])
        #expect(frame.joinRef.isNull && frame.ref.isNull)
        #expect(frame.topic.isEmpty && user.event.isEmpty && user.payload.isEmpty)
    }

    @Test func refsBecomeJSONStrings() throws {
        let (frame, _) = try read([3, 2, 4, 0, 0, 0, 1] + Array("\"\\null".utf8))
        #expect(frame.joinRef.description == #""\"\\""#)
        #expect(frame.ref.description == #""null""#)
    }

    @Test func metadataIsSteppedOver() throws {
        let (_, user) = try read([3, 0, 0, 1, 1, 2, 1] + Array("te{}[]".utf8))
        #expect(Array(user.payload) == Array("[]".utf8))
    }

    @Test func fieldsMayBe255BytesLong() throws {
        let long = Array(repeating: UInt8(ascii: "x"), count: 255)
        let (frame, user) = try read([3, 255, 255, 255, 255, 255, 0] + long + long + long + long + long + [1])
        #expect(frame.ref.bytes.count == 257)
        #expect(frame.topic.utf8.count == 255 && user.event.utf8.count == 255)
        #expect(Array(user.payload) == [1])
    }

    @Test func refusesOtherKinds() {
        for kind in UInt8.min...UInt8.max where kind != 3 {
            #expect(throws: ClientFrame.Malformed.unknownKind(kind)) {
                try ClientFrame(binary: ([kind] + Self.verified.dropFirst())[...], version: .v2)
            }
        }
    }

    @Test func everyTruncationBeforeThePayloadIsRefused() throws {
        let header = Self.verified.count - 7
        for count in 0..<header {
            #expect(throws: ClientFrame.Malformed.truncated, "\(count)") {
                try ClientFrame(binary: Self.verified[..<count], version: .v2)
            }
        }
        #expect(throws: Never.self) { try ClientFrame(binary: Self.verified[..<header], version: .v2) }
    }

    @Test func refusesTextThatIsNotUTF8() {
        for field in 0..<5 {
            var bytes: [UInt8] = [3, 0, 0, 0, 0, 0, 1, 0xFF]
            bytes[field + 1] = 1
            #expect(throws: ClientFrame.Malformed.notUTF8) { try ClientFrame(binary: bytes[...], version: .v2) }
        }
    }

    @Test func refusesUnknownEncodings() {
        for encoding in UInt8(2)...255 {
            var bytes = Self.verified
            bytes[6] = encoding
            #expect(throws: ClientFrame.Malformed.wrongType("encoding")) {
                try ClientFrame(binary: bytes[...], version: .v2)
            }
        }
    }

    @Test func versionOneHasNoBinary() {
        #expect(throws: ClientFrame.Malformed.binaryNeedsVersion2) { try read(Self.verified, .v1) }
    }

    @Test func readsFromTheMiddleOfABuffer() throws {
        let buffer = [9, 9] + Self.verified + [9]
        let frame = try ClientFrame(binary: buffer[2..<(buffer.count - 1)], version: .v2)
        #expect(frame.topic == "realtime:room1")
    }
}

import Testing
import Wire

@Suite struct ProtocolVersionTests {
    @Test func absentMeansTheFirst() { #expect(ProtocolVersion(vsn: nil) == .v1) }

    @Test(arguments: [("1.0.0", ProtocolVersion.v1), ("1.0.7", .v1), ("2.0.0", .v2), ("2.0.12", .v2)])
    func accepts(_ vsn: String, _ version: ProtocolVersion) { #expect(ProtocolVersion(vsn: vsn) == version) }

    @Test(arguments: [
        "", "1", "2", "1.0", "2.0", "1.1.0", "2.1.0", "3.0.0", "0.0.0", "2.0.0.0", "2.0.", "2.0.x", "2.0.0x", "v2.0.0",
        " 2.0.0",
        "2.0.0 ", "02.0.0", "2.00.0", "-2.0.0", "2.0.-1", "2.0.\u{663}", "²․0․0", "null",
    ])
    func refuses(_ vsn: String) { #expect(ProtocolVersion(vsn: vsn) == nil) }
}

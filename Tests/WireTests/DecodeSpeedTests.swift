import Testing
import Wire

/// Prints what reading a frame costs; asserts nothing, because machines differ.
@Suite struct DecodeSpeedTests {
    @Test func textBroadcast() throws {
        let text =
            #"["6","8","realtime:room1","broadcast",{"type":"broadcast","event":"cursor","payload":{"x":"#
            + #"120.5,"y":480.25,"user":"0192f0c1-7d6b-7e61-a9f3-0b6f7d0e5c11","name":"Zoë","color":"#
            + #""teal","tags":["a","b","c"],"note":"a sentence of ordinary length, such as people type"}}]"#
        let bytes = Array((text + String(repeating: " ", count: max(0, 300 - text.utf8.count))).utf8)[...]
        var topics = 0
        let rounds = 10_000
        // The best of several, because other tests run at the same time.
        let best =
            try (0..<7).map { _ in
                try ContinuousClock().measure {
                    for _ in 0..<rounds { topics += try ClientFrame(text: bytes, version: .v2).topic.utf8.count }
                }
            }.min() ?? .zero
        #expect(topics == 7 * rounds * 14)
        print(
            "decode: \((best / rounds).attoseconds / 1_000_000_000) ns for a v2 text broadcast of \(bytes.count) bytes")
    }
}

import Gateway
import Hub
import Testing

@Suite struct ConnectionIDTests {
    @Test func isReadAsItIsWritten() {
        let id = ConnectionID(loop: 1, slot: 234, serial: 5678)
        #expect(id.description == "1-234-5678")
        #expect(ConnectionID("1-234-5678") == id)
    }

    @Test(arguments: ["", "1", "1-2", "1-2-3-4", "a-b-c", "1-99999999999-3", "--"]) func nothingElseIs(text: String) {
        #expect(ConnectionID(text) == nil)
    }
}

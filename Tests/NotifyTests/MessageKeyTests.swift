import Hub
import Matching
import Notify
import Push
import Testing
import Wire

/// By what name an alert is known: the same at every hub and after every restart.
@Suite struct MessageKeyTests {
    private func change(_ keys: [String], _ record: String?) -> RowChange {
        let columns = ["id", "part", "body"].map { name in
            Column(
                name: Name(name), type: "text", sqlType: "text", comparison: .text, isPrimaryKey: keys.contains(name),
                isReplicaIdentity: false)
        }
        return RowChange(
            id: 12, table: Table(oid: 1, schema: "public", name: "messages", columns: columns), operation: .insert,
            commitTimestamp: "", record: record.map { Array($0.utf8) }, oldRecord: nil, isReduced: false)
    }

    @Test func byThePrimaryKey() {
        let one = change(["id"], #"{"id":7,"part":"a","body":"x"}"#)
        #expect(one.messageKey == "public.messages 7" && one.messageID == "7")
        #expect(one.identity == MessageIdentity(schema: "public", table: "messages", key: [("id", "7")]))
        let two = change(["id", "part"], #"{"id":7,"part":"a","body":"x"}"#)
        #expect(two.messageKey == #"public.messages 7 "a""# && two.messageID == nil)
    }

    @Test("Without a key the number in the outbox stands for it, which all hubs read")
    func byTheNumber() {
        #expect(change([], #"{"id":7}"#).messageKey == "public.messages #12")
        #expect(change(["id"], nil).messageKey == "public.messages #12" && change(["id"], nil).messageID == nil)
    }

    @Test("A push has one id for a message and a phone, whichever of Apple's environments it goes to")
    func pushID() throws {
        let token = try #require(PushToken(String(repeating: "00ff", count: 16)))
        func destination(_ environment: PushEnvironment) -> PushDestination {
            PushDestination(token: token, environment: environment, bundle: "org.example")
        }
        let id = PushID(of: "public.messages 7", to: destination(.production))
        #expect(id == PushID(of: "public.messages 7", to: destination(.sandbox)))
        #expect(id != PushID(of: "public.messages 8", to: destination(.production)))
    }
}

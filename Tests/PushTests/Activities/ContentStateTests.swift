import Foundation
import Hub
import Push
import Testing
import Wire

/// What a phone makes of it: ActivityKit decodes with JSONDecoder's defaults, and drops what it cannot decode.
@Suite struct ContentStateTests {
    /// The template and the struct of docs/push.md.
    private static let template = """
        {"conversationId":"{conversation_id}","conversationName":"{conversation_name}","sender":"{sender_name}",\
        "preview":"{preview}","unread":"{unread}","typing":"{typing}","online":"{online_count}",\
        "connected":"{connected}","version":"{version}","updatedAt":"{updated_at}"}
        """

    private struct ContentState: Decodable, Equatable {
        var conversationId: String
        var conversationName: String
        var sender: String
        var preview: String
        var unread: Int
        var typing: [String]
        var online: Int
        var connected: Bool
        var version: Int
        var updatedAt: Int
    }

    private func sent(_ facts: ConversationFacts, conversation: String?) throws -> ContentState {
        let stage = try SchedulerStage()
        stage.scheduler = ActivityScheduler(ActivityRules(content: try ContentTemplate(Self.template)))
        stage.put(
            try SchedulerStage.registration(conversation: conversation.map { Name($0) }), status: .away, facts: facts)
        stage.wait(2_000)
        return try JSONDecoder().decode(ContentState.self, from: Data(try #require(try stage.launch().stamp.state)))
    }

    @Test func nothingIsEverMissing() throws {
        let bare = try sent(ConversationFacts(), conversation: nil)
        let time = Int(SchedulerStage.start.unix / 1000) + 2
        #expect(
            bare
                == ContentState(
                    conversationId: "", conversationName: "", sender: "", preview: "", unread: 0, typing: [], online: 0,
                    connected: false, version: 1, updatedAt: time))
    }

    @Test func listsAndNamesAreShort() throws {
        let many = (0..<40).map { "user \($0 + 10)" }
        let long = String(repeating: "👩‍👩‍👧", count: 500)
        let facts = ConversationFacts(
            name: long, lastMessage: .init(text: long, senderID: "s", senderName: long, at: 1), unread: -1,
            typing: many,
            online: many + many)
        let state = try sent(facts, conversation: "c")
        #expect(state.typing == ["user 10", "user 11", "user 12"] && state.online == 40 && state.unread == 0)
        for text in [state.conversationName, state.sender, state.preview] {
            #expect(text.hasSuffix("👩‍👩‍👧…") && text.utf8.count <= 603)
        }
    }
}

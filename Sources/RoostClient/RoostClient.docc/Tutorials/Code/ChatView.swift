import SwiftUI

struct ChatView: View {
    let chat: Chat
    @State private var text = ""
    @State private var problem: String?
    @Environment(\.scenePhase) private var phase

    var body: some View {
        VStack {
            if let problem { Text(problem) }
            if chat.isAway { Text("No connection. What you write is sent later.") }
            List {
                ForEach(chat.messages) { Text($0.body) }
                ForEach(chat.pending) { Text($0.payload.body).foregroundStyle(.secondary) }
            }
            if !chat.typing.isEmpty { Text("\(chat.typing.formatted()) typing …") }
            TextField("Message", text: $text)
                .onChange(of: text) {
                    do { try chat.userTyped(isEmpty: text.isEmpty) } catch { problem = String(describing: error) }
                }
                .onSubmit {
                    let body = text
                    text = ""
                    Task { await show { try await chat.send(body) } }
                }
        }
        .navigationTitle(chat.present.formatted())
        .task { await show { try await chat.follow() } }
        .task { await show { try await chat.runOutbox() } }
        .task { await show { try await chat.followPresence() } }
        .task { await chat.followTyping() }
        .task { await chat.followConnection() }
        .onChange(of: phase) {
            chat.client.appState = phase == .active ? .active : phase == .inactive ? .inactive : .background
        }
    }

    /// Shows the error that ended the work; a cancellation, because the view disappeared, is not shown.
    private func show(_ work: () async throws -> Void) async {
        do { try await work() } catch is CancellationError {} catch { problem = String(describing: error) }
    }
}

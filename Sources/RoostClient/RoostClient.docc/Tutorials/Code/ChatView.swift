import SwiftUI

struct ChatView: View {
    let chat: Chat
    @State private var text = ""
    @Environment(\.scenePhase) private var phase

    var body: some View {
        VStack {
            if chat.isAway { Text("No connection. What you write is sent later.") }
            List {
                ForEach(chat.messages) { Text($0.body) }
                ForEach(chat.pending) { Text($0.payload.body).foregroundStyle(.secondary) }
            }
            if !chat.typing.isEmpty { Text("\(chat.typing.formatted()) typing …") }
            TextField("Message", text: $text)
                .onChange(of: text) { try? chat.userTyped(isEmpty: text.isEmpty) }
                .onSubmit {
                    let body = text
                    text = ""
                    Task { try await chat.send(body) }
                }
        }
        .navigationTitle(chat.present.formatted())
        .task { try? await chat.follow() }
        .task { try? await chat.runOutbox() }
        .task { try? await chat.followPresence() }
        .task { await chat.followTyping() }
        .task { await chat.followConnection() }
        .onChange(of: phase) {
            chat.client.appState = phase == .active ? .active : phase == .inactive ? .inactive : .background
        }
    }
}

import Foundation
import RoostClient

/// A chat on the command line, in the same room as examples/web/chat.html and examples/bot/bot.py.
///
///     export HUB=ws://127.0.0.1:4000 TOKEN=…        # examples/README.md says where a token comes from
///     swift run --package-path examples/swift-chat chat Ada
///
/// Each line of standard input is said to the room; the end of it (Ctrl-D) leaves.
@main
struct Chat {
    private struct Message: Codable, Sendable {
        let id: UUID
        let from: String
        let text: String
    }

    private struct Profile: Codable, Sendable { let name: String }

    static func main() async throws {
        let environment = ProcessInfo.processInfo.environment
        guard let hub = environment["HUB"].flatMap(URL.init), let token = environment["TOKEN"] else {
            print("Set HUB and TOKEN: examples/README.md says how")
            exit(64)
        }
        let name = CommandLine.arguments.dropFirst().first ?? "Swift"
        // Asked at each connect and before the token ends: return a fresh one here.
        let client = RoostClient(url: hub) { token }
        let room = client.channel("chat") {
            $0.presenceKey = name
            $0.receivesOwnBroadcasts = true
            $0.history = BroadcastHistory(seconds: 60)
        }
        // Made before `subscribe`, so that nothing which comes from then on is missed.
        let (messages, presence, typing) = (room.broadcasts("message", of: Message.self), room.presence, room.typing)
        let states = client.states
        try await room.subscribe()
        try await room.track(Profile(name: name))
        tell("* you are in")

        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                // A sequence ends by itself only with its channel; connections that break are mended below it.
                for try await message in messages { tell("\(message.payload.from): \(message.payload.text)") }
            }
            group.addTask {
                for await update in presence {
                    for key in update.joined where key != name { tell("* \(key) is here") }
                    for key in update.left { tell("* \(key) has left") }
                }
            }
            group.addTask {
                for await set in typing where !set.typists.isEmpty {
                    tell("* \(set.typists.compactMap(\.userID).joined(separator: ", ")) …")
                }
            }
            // Quiet about a loss that is shorter than the grace window, as the hub is to the others.
            group.addTask { for await state in states { tell("* \(state)") } }
            for await line in lines() where !line.isEmpty {
                try await room.send(event: "message", payload: Message(id: UUID(), from: name, text: line))
            }
            group.cancelAll()
        }
        await room.leave()
        await client.disconnect()
    }

    /// At once, also where standard output is a pipe.
    private static func tell(_ line: String) { FileHandle.standardOutput.write(Data((line + "\n").utf8)) }

    /// Standard input, read by a thread of its own: `readLine` waits.
    private static func lines() -> AsyncStream<String> {
        let (stream, continuation) = AsyncStream.makeStream(of: String.self)
        Thread.detachNewThread {
            while let line = readLine() { continuation.yield(line) }
            continuation.finish()
        }
        return stream
    }
}

import Glibc
import RoostClient
import Settings

/// Prints one stream as it grows, for `roost tail --stream`. Remarks go to standard error.
struct StreamTail {
    private let name: String
    private let hub: TailedHub
    private let configuration: RoostConfiguration

    init(_ name: String, of hub: TailedHub, _ configuration: RoostConfiguration) {
        self.name = name
        self.hub = hub
        self.configuration = configuration
    }

    private enum Outcome: Sendable {
        /// An interruption by the user, or a closed output.
        case enough
        case ended(StreamEnd)
        case refused(RoostError)
    }

    /// Prints until the stream ends, until Ctrl-C or SIGTERM, or until the hub refuses the stream for good.
    func printStream() async throws {
        let client = try hub.makeClient(configuration)
        Signals.handleSignals(to: [SIGINT, SIGTERM])
        let outcome = await followStream(client.stream(name), of: client)
        await client.disconnect()
        switch outcome {
        case .enough: break
        case .ended(let end) where end.reason == .complete: break
        case .ended(let end): throw RunFailure("The stream ended: \(end.reason.rawValue).", .refused)
        case .refused(let error): throw RunFailure(error.description, .refused)
        }
    }

    private func followStream(_ stream: RoostStream, of client: RoostClient) async -> Outcome {
        let (updates, sockets) = (stream.updates, client.socketEvents)
        return await withTaskGroup(of: Outcome.self) { group in
            group.addTask {
                await Signals.waitForInterruption()
                return .enough
            }
            group.addTask {
                for await event in sockets {
                    if let refusal = TailNotes.refusal(event) { return .refused(refusal) }
                    TailNotes.say(event)
                }
                await TailNotes.waitForCancellation()
                return .enough
            }
            group.addTask { await Self.printUpdates(updates) }
            defer { group.cancelAll() }
            return await group.next() ?? .enough
        }
    }

    private static func printUpdates(_ updates: StreamUpdates) async -> Outcome {
        var hasBegun = false
        var wasStalled = false
        do throws(RoostError) {
            for try await update in updates {
                switch update {
                case .begins:
                    if hasBegun { TailNotes.say("another stream of this name begins") }
                    hasBegun = true
                case .text(let text): guard StandardOutput.write(Array(text.utf8)) else { return .enough }
                case .bytes(let bytes): guard StandardOutput.write(Array(bytes)) else { return .enough }
                case .message(let message):
                    guard StandardOutput.write(Array(message.json) + [0x0A]) else { return .enough }
                case .state(let state):
                    if state == .stalled || wasStalled { TailNotes.say(state.rawValue) }
                    wasStalled = state == .stalled
                case .ended(let end):
                    if let row = end.row {
                        let shown = StandardOutput.withoutControls(Array(row))
                        TailNotes.say("its row is \(String(decoding: shown, as: UTF8.self))")
                    }
                    return .ended(end)
                }
            }
            return .enough
        } catch { return .refused(error) }
    }
}

import Foundation
import RoostClient
import Synchronization

/// What a session does with streams, by commands whose `channel` is the stream's name.
extension SessionScenario {
    /// - Returns: false where the command is none about streams.
    func handleStream(_ command: Command) throws -> Bool {
        guard command.do.hasPrefix("stream") else { return false }
        guard let client else { throw Unknown(command: "no client") }
        let name = command.channel ?? "reply"
        let stream = client.stream(name) { $0.streamGathering = .milliseconds(5) }
        switch command.do {
        case "stream": read(stream.updates, command.name, pause: command.pause ?? 0)
        case "stream_texts": show(stream.texts, command.name)
        case "stream_write": write(stream, command)
        case "stream_finish": isWritingOver.raise()
        case "stream_cancel":
            start("cancel") {
                do throws(RoostError) {
                    try await stream.cancel()
                    Output.line("cancelled")
                } catch {
                    Output.line("uncancelled", ["text": error.description])
                }
            }
        default: return false
        }
        return true
    }

    private func read(_ updates: StreamUpdates, _ name: String?, pause: Double) {
        start(name) {
            do throws(RoostError) {
                for try await update in updates {
                    Self.tell(update)
                    if pause > 0 { await Self.sleep(pause) }
                }
            } catch {
                Output.line("failed", ["text": error.description])
            }
            Output.line("ended", ["name": name ?? ""])
        }
    }

    private static func tell(_ update: StreamUpdate) {
        switch update {
        case .begins(let id): Output.line("begins", ["id": id])
        case .text(let text): Output.line("text", ["text": text])
        case .message(let message): Output.line("message", ["json": String(decoding: message.json, as: UTF8.self)])
        case .bytes(let bytes): Output.line("bytes", ["base64": bytes.base64EncodedString()])
        case .state(let state): Output.line("stream_state", ["state": state.rawValue])
        case .ended(let end):
            let row = end.row.map { String(decoding: $0, as: UTF8.self) } ?? ""
            Output.line("stream_end", ["reason": end.reason.rawValue, "offset": end.offset, "row": row])
        }
    }

    private func show(_ texts: StreamTexts, _ name: String?) {
        start(name) {
            do throws(RoostError) {
                for try await text in texts {
                    Output.line("shown", ["text": text.text, "end": text.end?.reason.rawValue ?? ""])
                }
            } catch {
                Output.line("failed", ["text": error.description])
            }
            Output.line("ended", ["name": name ?? ""])
        }
    }

    /// Appends `count` pieces from the number `first` on, or until `stream_finish`, `pause` seconds apart, and closes the stream if
    /// `on` says so. `state` is what is written: text, message or bytes.
    private func write(_ stream: RoostStream, _ command: Command) {
        let (first, count, pause) = (command.first ?? 0, command.count ?? .max, command.pause ?? 0)
        let (form, closes, isOver) = (command.state ?? "text", command.on ?? false, isWritingOver)
        // It is there after the last piece, too: a stream whose writer leaves has stalled.
        let writer = writers[stream.name] ?? stream.writer(producer: command.producer)
        writers[stream.name] = writer
        start("write \(stream.name)") {
            do throws(RoostError) {
                var number = first
                while number - first < count, !isOver.isRaised {
                    let piece = command.text ?? "\(number) Grüße 🐦\n"
                    switch form {
                    case "message": try await writer.append(message: ["n": number])
                    case "bytes": try await writer.append(bytes: Data(piece.utf8))
                    default: try await writer.append(piece)
                    }
                    number += 1
                    if pause > 0 { await Self.sleep(pause) }
                }
                if closes { try await writer.close() } else { try await writer.flush() }
                Output.line("written", ["end": writer.keptOffset, "pieces": number - first])
            } catch {
                Output.line("unwritten", ["text": error.description])
            }
        }
    }

    private static func sleep(_ seconds: Double) async {
        do { try await Task.sleep(for: .seconds(seconds)) } catch {
            // The task is over, and so is the loop around it.
        }
    }
}

/// Something that is said once, to tasks.
final class ProbeFlag: Sendable {
    private let value = Mutex(false)

    var isRaised: Bool { value.withLock { $0 } }

    func raise() { value.withLock { $0 = true } }
}

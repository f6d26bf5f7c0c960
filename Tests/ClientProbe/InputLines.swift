import Foundation

/// The lines of standard input, read by a thread of their own: they may be long in coming.
enum InputLines {
    static func stream() -> AsyncStream<String> {
        let (lines, continuation) = AsyncStream.makeStream(of: String.self)
        Thread.detachNewThread {
            while let line = readLine() { continuation.yield(line) }
            continuation.finish()
        }
        return lines
    }
}

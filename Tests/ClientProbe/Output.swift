import Foundation

/// One line of JSON for each thing that happens.
enum Output {
    private static let began = ContinuousClock.now
    private static let lock = NSLock()

    static func line(_ event: String, _ details: [String: any Sendable] = [:]) {
        let passed = began.duration(to: .now)
        var object: [String: Any] = details
        object["event"] = event
        object["at"] = Double(passed.components.seconds) + Double(passed.components.attoseconds) / 1e18
        do {
            var data = try JSONSerialization.data(withJSONObject: object, options: [.sortedKeys])
            data.append(0x0A)
            lock.withLock { FileHandle.standardOutput.write(data) }
        } catch {
            fatalError("a line that is no JSON: \(event)")
        }
    }
}

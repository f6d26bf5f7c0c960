import Testing

/// Waits for a condition, never for a length of time: gives up after so many looks, which are few where the machine is
/// busy with other tests.
func eventually(
    _ what: Comment, looks: Int = 5000, sourceLocation: SourceLocation = #_sourceLocation,
    _ condition: () -> Bool
) async throws {
    var left = looks
    while !condition() {
        left -= 1
        try #require(left > 0, what, sourceLocation: sourceLocation)
        try await Task.sleep(for: .milliseconds(5))
    }
}

import Testing

/// Waits for a condition, never for a length of time.
func eventually(
    _ what: Comment, within limit: Duration = .seconds(60), sourceLocation: SourceLocation = #_sourceLocation,
    _ condition: () -> Bool
) async throws {
    let end = ContinuousClock.now + limit
    while !condition() {
        try #require(ContinuousClock.now < end, what, sourceLocation: sourceLocation)
        try await Task.sleep(for: .milliseconds(5))
    }
}

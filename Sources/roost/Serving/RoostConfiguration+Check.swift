import ChangeFeed
import Identity
import Push
import Settings

/// Everything that `roost serve` does not start with, and that can be seen without a database and without a network.
extension RoostConfiguration {
    func checkForServing() async throws {
        let command = "roost serve"
        try checkDatabase(requireDatabaseURL(for: command))
        try requireKeys(for: command)
        try await checkKeyFile()
        try checkCertificate()
        _ = try apns()
        // Also where nothing is pushed: what is wrong is better found before it is wanted.
        _ = try pushRules(bundle: push.topic ?? "", audience: nil, facts: nil)
    }

    private func checkDatabase(_ url: String) throws {
        do {
            try DatabaseURL.check(url)
        } catch {
            throw RunFailure("\(subject("database.url")): \(error)", .configuration)
        }
    }

    private func checkKeyFile() async throws {
        var settings = keySettings
        settings.url = nil
        for source in await KeyKeeper.examine(settings) {
            if case .failure(let problem) = source.outcome { throw RunFailure("\(problem).", .configuration) }
        }
    }
}

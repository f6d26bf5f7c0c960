extension KeyKeeper {
    /// A source of keys, tried once.
    package struct Examined: Sendable {
        /// The setting that names it.
        package let name: String
        /// How many keys it has that verify tokens.
        package let outcome: Result<Int, KeyProblem>
    }

    /// Tries the sources of keys that are set, for `roost doctor`.
    package static func examine(_ settings: KeySettings) async -> [Examined] {
        var all: [Examined] = []
        if let path = settings.file {
            all.append(Examined(name: "jwks.file", outcome: await count(KeyFile(path: path).read)))
        }
        if let url = settings.url {
            all.append(Examined(name: "jwks.url", outcome: await count(KeyURL(url).fetch)))
        }
        return all
    }

    private static func count(
        _ read: () async throws(KeyProblem) -> KeySet
    ) async -> Result<Int, KeyProblem> {
        do { return .success(try await read().keys.count) } catch { return .failure(error) }
    }
}

import Logging

/// The keeper's memory from one look to the next.
struct KeyRound: Sendable {
    let gate: TokenGate
    private let settings: KeySettings
    private let logger: Logger
    private let secrets: [VerificationKey]
    private let file: KeyFile?
    private let url: KeyURL?

    private var fromFile: KeySet?
    private var fromURL: KeySet?
    private var version: KeyFile.Version?
    private var fetched = ContinuousClock.now
    /// The last read failed; the log was told.
    private var fileFails = false
    private var urlFails = false

    init(_ settings: KeySettings, gate: TokenGate, logger: Logger) {
        self.settings = settings
        self.gate = gate
        self.logger = logger
        secrets = settings.secrets.map {
            VerificationKey(secret: Array($0.utf8), for: SignatureAlgorithm.symmetric)
        }
        file = settings.file.map { KeyFile(path: $0) }
        url = settings.url.map { KeyURL($0) }
    }

    var mayChange: Bool { file != nil || url != nil }

    /// How often is looked.
    var rhythm: KeySettings.Rhythm { settings.rhythm }

    /// Reads the keys for the first time. They are not in force before `install`.
    mutating func read() async throws(KeyProblem) {
        if let file {
            version = file.version
            fromFile = try file.read()
        }
        if url != nil { await fetch() }
    }

    /// A URL that does not answer just now loses none of the keys that came from it before.
    mutating func keepKeys(of before: KeyRound) {
        guard fromURL == nil, let url, url.url == before.url?.url else { return }
        fromURL = before.fromURL
    }

    /// One look at everything that is due.
    mutating func go(_ bell: Bell) async {
        let isWanted = bell.isWaiting
        if isWanted, url == nil { bell.answer() }
        let fileChanged = readFile()
        var urlChanged = false
        if url != nil, isDue(isWanted) {
            // Before the fetch: who rings during it may have a key that came too late for its answer.
            bell.answer()
            urlChanged = await fetch()
        }
        if fileChanged || urlChanged { install() }
    }

    private func isDue(_ isWanted: Bool) -> Bool {
        let age = ContinuousClock.now - fetched
        if isWanted, age >= settings.rhythm.pause { return true }
        return age >= (urlFails ? settings.rhythm.retry : settings.rhythm.refresh)
    }

    /// True where there are other keys than before.
    private mutating func readFile() -> Bool {
        guard let file else { return false }
        // Taken before reading: a change during it makes another version, which the next look sees.
        let found = file.version
        guard found != version || (fileFails && found != nil) else { return false }
        version = found
        do {
            let set = try file.read()
            defer { fromFile = set }
            if fileFails { logger.notice("The key file can be used again.") }
            fileFails = false
            return isNews(set, fromFile, "jwks.file")
        } catch {
            if !fileFails { logger.warning("\(error). The last good keys stay in force.") }
            fileFails = true
            return false
        }
    }

    @discardableResult
    private mutating func fetch() async -> Bool {
        guard let url else { return false }
        defer { fetched = .now }
        do {
            let set = try await url.fetch()
            defer { fromURL = set }
            if urlFails { logger.notice("The keys at jwks.url can be had again.") }
            urlFails = false
            return isNews(set, fromURL, "jwks.url")
        } catch {
            let rest = fromURL == nil ? "tokens signed with them are refused" : "the last good ones stay in force"
            if !urlFails { logger.warning("\(error); \(rest), and the hub keeps trying.") }
            urlFails = true
            return false
        }
    }

    /// New keys make the gate forget what it verified, so the same ones again must not count as new.
    private func isNews(_ set: KeySet, _ before: KeySet?, _ source: String) -> Bool {
        guard set.text != before?.text else { return false }
        logger.info(
            "The keys of \(source) were read.", metadata: ["keys": "\(set.keys.count)", "skipped": "\(set.skipped)"])
        return true
    }

    func install() {
        let keys = secrets + (fromFile?.keys ?? []) + (fromURL?.keys ?? [])
        gate.replace(KeyRing(keys, allowing: settings.algorithms), rules: settings.rules)
    }
}

import CCurl
import Dispatch
import Glibc
import Logging

/// The sources of keys (secrets, a file, a URL), each with the keys of its last read.
struct KeySources: Sendable {
    let verifier: JWTVerifier
    private let settings: KeySettings
    private let logger: Logger
    private let secrets: [VerificationKey]
    private let file: KeyFile?
    private let url: KeyURL?

    private var fromFile: JWKSet?
    private var fromURL: JWKSet?
    private var version: KeyFile.Version?
    private var fetched = ContinuousClock.now
    /// Set if the last read of the file failed, so that it is logged once. `urlFails` does the same for the URL.
    private var fileFails = false
    private var urlFails = false

    init(_ settings: KeySettings, verifier: JWTVerifier, logger: Logger) {
        self.settings = settings
        self.verifier = verifier
        self.logger = logger
        secrets = settings.secrets.map {
            VerificationKey(secret: Array($0.utf8), for: SignatureAlgorithm.symmetric)
        }
        file = settings.file.map { KeyFile(path: $0) }
        url = settings.url.map { KeyURL($0) }
    }

    /// Whether there is a file or a URL to read again.
    var mayChange: Bool { file != nil || url != nil }

    var intervals: KeySettings.Intervals { settings.intervals }

    /// Reads the keys for the first time, without putting them in force.
    mutating func readAll() async throws(KeyProblem) {
        if let file {
            version = file.version
            fromFile = try file.readKeys()
        }
        if url != nil { await fetchKeys() }
    }

    /// Keeps the keys that came from the same URL before if it does not answer now.
    mutating func keepKeys(of before: KeySources) {
        guard fromURL == nil, let url, url.url == before.url?.url else { return }
        fromURL = before.fromURL
    }

    /// Reads the sources that are due, and installs their keys if they have changed.
    mutating func refreshKeys(_ signal: RefreshSignal) async {
        let isRequested = signal.isRequested
        if isRequested, url == nil { signal.clearRequest() }
        let fileChanged = readFile()
        var urlChanged = false
        if url != nil, isDue(isRequested) {
            // Cleared before the fetch: a request during it may concern a key that is too new for the answer.
            signal.clearRequest()
            urlChanged = await fetchKeys()
        }
        if fileChanged || urlChanged { installKeys() }
    }

    private func isDue(_ isRequested: Bool) -> Bool {
        let age = ContinuousClock.now - fetched
        if isRequested, age >= settings.intervals.pause { return true }
        return age >= (urlFails ? settings.intervals.retry : settings.intervals.refresh)
    }

    /// Returns true if the keys have changed.
    private mutating func readFile() -> Bool {
        guard let file else { return false }
        // Taken before reading: a change during the read makes another version, which the next check finds.
        let found = file.version
        guard found != version || (fileFails && found != nil) else { return false }
        version = found
        do {
            let set = try file.readKeys()
            defer { fromFile = set }
            if fileFails { logger.notice("The key file can be used again.") }
            fileFails = false
            return areNew(set, fromFile, "jwks.file")
        } catch {
            if !fileFails { logger.warning("\(error). The last good keys stay in force.") }
            fileFails = true
            return false
        }
    }

    @discardableResult
    private mutating func fetchKeys() async -> Bool {
        guard let url else { return false }
        defer { fetched = .now }
        do {
            let set = try await url.fetchKeys()
            defer { fromURL = set }
            if urlFails { logger.notice("The keys at jwks.url can be fetched again.") }
            urlFails = false
            return areNew(set, fromURL, "jwks.url")
        } catch {
            let rest = fromURL == nil ? "tokens signed with them are refused" : "the last good ones stay in force"
            if !urlFails { logger.warning("\(error); \(rest), and the hub keeps trying.") }
            urlFails = true
            return false
        }
    }

    /// New keys make the verifier discard its cache, so unchanged ones must not count as new.
    private func areNew(_ set: JWKSet, _ before: JWKSet?, _ source: String) -> Bool {
        guard set.text != before?.text else { return false }
        logger.info(
            "The keys of \(source) were read.", metadata: ["keys": "\(set.keys.count)", "skipped": "\(set.skipped)"])
        return true
    }

    /// Puts the last read keys in force.
    func installKeys() {
        let keys = secrets + (fromFile?.keys ?? []) + (fromURL?.keys ?? [])
        verifier.replaceKeys(ActiveKeys(keys, allowing: settings.algorithms), rules: settings.rules)
    }
}

/// A file with a JWK Set that may change.
struct KeyFile {
    let path: String

    /// Tells one version of a file from the next, even if one was moved over the other.
    struct Version: Equatable {
        let inode: UInt
        let size: Int
        let seconds: Int
        let nanoseconds: Int
    }

    /// The current version; nil if there is no such file.
    var version: Version? {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        return Version(
            inode: UInt(status.st_ino), size: Int(status.st_size), seconds: status.st_mtim.tv_sec,
            nanoseconds: status.st_mtim.tv_nsec)
    }

    func readKeys() throws(KeyProblem) -> JWKSet {
        do {
            let set = try JWKSet(parsing: readBytes())
            if set.keys.isEmpty { throw KeyProblem("it has no keys") }
            return set
        } catch {
            throw KeyProblem("The key file \(path) cannot be used: \(error); correct it, or the path in jwks.file")
        }
    }

    private func readBytes() throws(KeyProblem) -> [UInt8] {
        guard let file = fopen(path, "rbe") else { throw KeyProblem(Self.errnoText(errno)) }
        defer { fclose(file) }
        var bytes = [UInt8](repeating: 0, count: JWKSet.maximumBytes + 1)
        let count = fread(&bytes, 1, bytes.count, file)
        guard ferror(file) == 0 else { throw KeyProblem(Self.errnoText(errno)) }
        guard count <= JWKSet.maximumBytes else { throw KeyProblem("it is longer than \(JWKSet.maximumBytes) bytes") }
        return Array(bytes.prefix(count))
    }

    private static func errnoText(_ number: Int32) -> String { String(cString: strerror(number)).lowercased() }
}

/// A JWK Set behind a URL.
///
/// libcurl blocks, so it runs on a queue of its own and never on a thread that others need.
struct KeyURL {
    let url: String
    private let queue = DispatchQueue(label: "roost.keys")

    /// A service that takes longer counts as unreachable: the previous keys stay in force.
    private static let timeoutMilliseconds = 5000

    init(_ url: String) { self.url = url }

    /// An empty set is valid: a service that signs with a shared secret has one.
    func fetchKeys() async throws(KeyProblem) -> JWKSet {
        let url = url
        let answer: Result<[UInt8], KeyProblem> = await withCheckedContinuation { continuation in
            queue.async { continuation.resume(returning: Self.fetchBytes(url)) }
        }
        do {
            return try JWKSet(parsing: answer.get())
        } catch {
            throw KeyProblem("The keys at jwks.url cannot be fetched: \(error)")
        }
    }

    private static func fetchBytes(_ url: String) -> Result<[UInt8], KeyProblem> {
        var problem = [CChar](repeating: 0, count: Int(ROOST_FETCH_PROBLEM_SIZE))
        var bytes = [UInt8](repeating: 0, count: JWKSet.maximumBytes)
        let count = roost_fetch(url, timeoutMilliseconds, &bytes, bytes.count, &problem)
        guard count >= 0 else {
            let words = problem.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
            return .failure(KeyProblem(String(decoding: words, as: UTF8.self)))
        }
        return .success(Array(bytes.prefix(count)))
    }
}

/// The settings of keys: their sources, and the rules for tokens.
package struct KeySettings: Sendable {
    /// Shared secrets: the current and the previous ones.
    package var secrets: [String] = []
    /// The path of a JWK Set.
    package var file: String?
    /// The URL of a JWK Set, http or https.
    package var url: String?
    /// The accepted algorithms; nil for all that the keys allow.
    package var algorithms: Set<SignatureAlgorithm>?
    package var rules = ClaimRules()
    package var intervals = Intervals()

    /// The intervals at which the sources are read.
    package struct Intervals: Sendable {
        /// The interval at which the file's modification time and other due work are checked.
        package var look: Duration = .seconds(2)
        /// The interval of fetches from the URL while they succeed.
        package var refresh: Duration = .seconds(300)
        /// The pause before the next fetch after a failure.
        package var retry: Duration = .seconds(15)
        /// The least time between two fetches, however many tokens name unknown keys.
        package var pause: Duration = .seconds(5)

        package init() {}
    }

    package init() {}
}

extension KeySettings {
    /// A source of keys that was read once, as a check.
    package struct Examined: Sendable {
        /// The name of its setting.
        package let name: String
        /// The number of keys that can verify tokens.
        package let outcome: Result<Int, KeyProblem>
    }

    /// Reads the configured file and URL once. Waits for the URL for some seconds at most.
    package func examineSources() async -> [Examined] {
        var all: [Examined] = []
        if let file {
            all.append(Examined(name: "jwks.file", outcome: await Self.countKeys(KeyFile(path: file).readKeys)))
        }
        if let url {
            all.append(Examined(name: "jwks.url", outcome: await Self.countKeys(KeyURL(url).fetchKeys)))
        }
        return all
    }

    private static func countKeys(
        _ read: () async throws(KeyProblem) -> JWKSet
    ) async -> Result<Int, KeyProblem> {
        do { return .success(try await read().keys.count) } catch { return .failure(error) }
    }
}

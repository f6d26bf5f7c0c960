import CCurl
import Dispatch
import Glibc
import Logging

/// Where the keys come from (secrets, a file, a URL), with what each of them held when it was last read.
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
    /// Whether the last read of the file failed, so that the log says it once. `urlFails` is the same of the URL.
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

    /// Reads the keys for the first time. They are not in force before `install`.
    mutating func read() async throws(KeyProblem) {
        if let file {
            version = file.version
            fromFile = try file.read()
        }
        if url != nil { await fetch() }
    }

    /// A URL that does not answer just now loses none of the keys that came from it before.
    mutating func keepKeys(of before: KeySources) {
        guard fromURL == nil, let url, url.url == before.url?.url else { return }
        fromURL = before.fromURL
    }

    /// Reads what is due, and installs the keys where they are others than before.
    mutating func refresh(_ signal: RefreshSignal) async {
        let isRequested = signal.isRequested
        if isRequested, url == nil { signal.clearRequest() }
        let fileChanged = readFile()
        var urlChanged = false
        if url != nil, isDue(isRequested) {
            // Before the fetch: who asks during it may have a key that came too late for its answer.
            signal.clearRequest()
            urlChanged = await fetch()
        }
        if fileChanged || urlChanged { install() }
    }

    private func isDue(_ isRequested: Bool) -> Bool {
        let age = ContinuousClock.now - fetched
        if isRequested, age >= settings.intervals.pause { return true }
        return age >= (urlFails ? settings.intervals.retry : settings.intervals.refresh)
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
            return areNew(set, fromFile, "jwks.file")
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

    /// New keys make the verifier forget what it verified, so the same ones again must not count as new.
    private func areNew(_ set: JWKSet, _ before: JWKSet?, _ source: String) -> Bool {
        guard set.text != before?.text else { return false }
        logger.info(
            "The keys of \(source) were read.", metadata: ["keys": "\(set.keys.count)", "skipped": "\(set.skipped)"])
        return true
    }

    /// Puts the keys that were read last in force.
    func install() {
        let keys = secrets + (fromFile?.keys ?? []) + (fromURL?.keys ?? [])
        verifier.replace(ActiveKeys(keys, allowing: settings.algorithms), rules: settings.rules)
    }
}

/// A file that holds a JWK Set and may change.
struct KeyFile {
    let path: String

    /// What tells one version of the file from the next, also where one was moved over the other.
    struct Version: Equatable {
        let inode: UInt
        let size: Int
        let seconds: Int
        let nanoseconds: Int
    }

    /// The version that is there now; nil where there is no such file.
    var version: Version? {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        return Version(
            inode: UInt(status.st_ino), size: Int(status.st_size), seconds: status.st_mtim.tv_sec,
            nanoseconds: status.st_mtim.tv_nsec)
    }

    func read() throws(KeyProblem) -> JWKSet {
        do {
            let set = try JWKSet(parsing: bytes())
            if set.keys.isEmpty { throw KeyProblem("it has no keys") }
            return set
        } catch {
            throw KeyProblem("The key file \(path) cannot be used: \(error); correct it, or the path in jwks.file")
        }
    }

    private func bytes() throws(KeyProblem) -> [UInt8] {
        guard let file = fopen(path, "rbe") else { throw KeyProblem(Self.reason(errno)) }
        defer { fclose(file) }
        var bytes = [UInt8](repeating: 0, count: JWKSet.maximumBytes + 1)
        let count = fread(&bytes, 1, bytes.count, file)
        guard ferror(file) == 0 else { throw KeyProblem(Self.reason(errno)) }
        guard count <= JWKSet.maximumBytes else { throw KeyProblem("it is longer than \(JWKSet.maximumBytes) bytes") }
        return Array(bytes.prefix(count))
    }

    private static func reason(_ number: Int32) -> String { String(cString: strerror(number)).lowercased() }
}

/// A JWK Set behind a URL.
///
/// libcurl waits, so it does that on a queue of its own and never on a thread that others need.
struct KeyURL {
    let url: String
    private let queue = DispatchQueue(label: "roost.keys")

    /// A service that takes longer than this is as good as away: the keys from before stay in force.
    private static let timeoutMilliseconds = 5000

    init(_ url: String) { self.url = url }

    /// An empty set is a good one: a service that signs with no key of its own has it.
    func fetch() async throws(KeyProblem) -> JWKSet {
        let url = url
        let answer: Result<[UInt8], KeyProblem> = await withCheckedContinuation { continuation in
            queue.async { continuation.resume(returning: Self.get(url)) }
        }
        do {
            return try JWKSet(parsing: answer.get())
        } catch {
            throw KeyProblem("The keys at jwks.url cannot be fetched: \(error)")
        }
    }

    private static func get(_ url: String) -> Result<[UInt8], KeyProblem> {
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

/// What is set of keys: where they come from, and what a token must say.
package struct KeySettings: Sendable {
    /// Shared secrets: the one in use and those before it.
    package var secrets: [String] = []
    /// The path of a JWK Set.
    package var file: String?
    /// The address that a JWK Set is fetched from, http or https.
    package var url: String?
    /// The only ways that a token may be signed; nil for all that the keys allow.
    package var algorithms: Set<SignatureAlgorithm>?
    package var rules = ClaimRules()
    package var intervals = Intervals()

    /// How often the sources are read.
    package struct Intervals: Sendable {
        /// How often the file's time of change is looked at, and whether anything else is due.
        package var look: Duration = .seconds(2)
        /// How often the URL is fetched when all is well.
        package var refresh: Duration = .seconds(300)
        /// When the URL is fetched again after a failure.
        package var retry: Duration = .seconds(15)
        /// The least time between two fetches, however many tokens name keys that nobody knows.
        package var pause: Duration = .seconds(5)

        package init() {}
    }

    package init() {}
}

extension KeySettings {
    /// A source of keys that was read once, to see whether it can be.
    package struct Examined: Sendable {
        /// The setting that names it.
        package let name: String
        /// How many keys it has that verify tokens.
        package let outcome: Result<Int, KeyProblem>
    }

    /// Reads the file and the URL that are set, once. Waits for a URL some seconds at most.
    package func examine() async -> [Examined] {
        var all: [Examined] = []
        if let file {
            all.append(Examined(name: "jwks.file", outcome: await Self.count(KeyFile(path: file).read)))
        }
        if let url {
            all.append(Examined(name: "jwks.url", outcome: await Self.count(KeyURL(url).fetch)))
        }
        return all
    }

    private static func count(
        _ read: () async throws(KeyProblem) -> JWKSet
    ) async -> Result<Int, KeyProblem> {
        do { return .success(try await read().keys.count) } catch { return .failure(error) }
    }
}

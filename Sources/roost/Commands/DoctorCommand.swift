import Administration
import ArgumentParser
import Cluster
import Documents
import Glibc
import Hub
import Identity
import Settings
import Wire

struct DoctorCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor",
        abstract: "Check what the hub needs, and say what to do about what is missing.",
        discussion: """
            Looks at the machine (the event loop's package, open files, io_uring, the kernel's queues, the clock), the \
            folder of streams, the certificate, the token keys, the database (reachable, version, rights, schema, a \
            pooler in between, free sessions, long transactions, standbys, the outbox, triggers, what is needed to \
            read the WAL, other hubs of the same name, the roles of clients, messages from SQL, policies, the \
            statement of streams' ends), Redis if several hubs act as one, and whether Apple takes the key for pushes. \
            Compares declared scopes with the policies, and with what users see of sample rows, in a transaction that \
            is rolled back. Ends with 0 if all is well, with 69 if something is wrong; warnings do not count. Run it \
            where the hub runs.
            """
    )

    @Flag(help: "Print the findings as one JSON object, with the number of errors and warnings.")
    var json = false

    @Option(
        help: ArgumentHelp("Also send a test push to this phone.", valueName: "hex"),
        transform: { text in
            guard let token = PushToken(text) else { throw ValidationError("a token in hexadecimal is expected.") }
            return token
        })
    var pushToken: PushToken?

    @OptionGroup(title: "Configuration")
    var options: ConfigurationOptions

    func run() async throws {
        let isHealthy = try await Examination(options.loadAndApply(), pushToken: pushToken).runChecks(json: json)
        if !isHealthy { throw ExitCode(ExitStatus.unavailable.rawValue) }
    }
}

/// The checks of `roost doctor`: the machine, then everything that depends on it.
struct Examination {
    private let configuration: RoostConfiguration

    private let pushToken: PushToken?

    /// - Parameter pushToken: the phone for a test push.
    init(_ configuration: RoostConfiguration, pushToken: PushToken? = nil) {
        self.configuration = configuration
        self.pushToken = pushToken
    }

    /// Runs all checks and prints the findings. Returns true if there are no errors; warnings do not count.
    func runChecks(json: Bool) async throws -> Bool {
        let url = try configuration.requireDatabaseURL(for: "roost doctor")
        let hub = ExaminedHub(
            node: configuration.nodeName, retention: .seconds(configuration.retentionHours * 3600),
            sendsPushes: configuration.push.isAnythingSent || configuration.webPush.privateKey != nil,
            listens: configuration.notifyChannels != nil,
            readsWAL: configuration.capturesFromWAL, storesStreams: configuration.streams.onClose != nil,
            policySessions: configuration.policySessions)
        let report = FindingsReport(
            findings: MachineExamination(configuration: configuration).runChecks()
                + StreamsExamination(settings: configuration.streams).runChecks()
                + [CertificateExamination(files: configuration.certificateFiles, now: time(nil)).checkFiles()]
                + (await checkKeys())
                + Doctor.examineDatabase(conninfo: url, for: hub)
                + (configuration.usersStatement.map { Doctor.examine(usersStatement: $0, conninfo: url) } ?? [])
                + (configuration.push.receiptsStatement.map {
                    Doctor.examine(receiptsStatement: $0, tables: configuration.push.receiptsTables, conninfo: url)
                } ?? [])
                + checkCloseRules(url)
                + checkRedis()
                + (await PushExamination(configuration, token: pushToken).runChecks(conninfo: url)))
        StandardOutput.writeLine(json ? report.json : report.text)
        return report.errors == 0
    }

    /// `StreamsExamination` reports invalid entries.
    private func checkCloseRules(_ url: String) -> [Finding] {
        do throws(RunFailure) {
            let rules = try configuration.streams.closeRules()
            return rules.isEmpty ? [] : Doctor.examine(closeRules: rules, conninfo: url)
        } catch {
            return []
        }
    }

    private func checkRedis() -> [Finding] {
        do throws(RunFailure) {
            guard let address = try configuration.clusterAddress() else {
                return [Finding(.good, "redis", "This hub is alone (cluster.url is not set).")]
            }
            return RedisDoctor(
                address, cluster: configuration.cluster.name, node: configuration.nodeName,
                logEntries: LogLength.mostEntries, logBytes: configuration.cluster.logBytes
            ).examineServer()
        } catch {
            return [Finding(.error, "redis", error.sentence)]
        }
    }

    private func checkKeys() async -> [Finding] {
        do throws(ConfigurationError) {
            try configuration.requireKeys(for: "roost serve")
        } catch {
            return [Finding(.error, "token keys", error.message)]
        }
        let settings = configuration.keySettings
        let secrets = settings.secrets.isEmpty ? [] : [Finding(.good, "token keys", "jwt.secret is set.")]
        return secrets
            + (await settings.examineSources()).map { source in
                switch source.outcome {
                case .success(let count): Finding(.good, "token keys", "\(source.name): \(count) keys verify tokens.")
                case .failure(let problem): Finding(.error, "token keys", "\(problem).")
                }
            }
    }
}

/// The output of `roost doctor`.
struct FindingsReport {
    let findings: [Finding]

    var errors: Int { findings.count { $0.severity == .error } }
    private var warnings: Int { findings.count { $0.severity == .warning } }

    var text: String {
        let lines = findings.map { finding in
            let mark =
                switch finding.severity {
                case .good: "ok     "
                case .warning: "warning"
                case .error: "ERROR  "
                }
            return "\(mark)  \(finding.subject): \(finding.message)"
        }
        return (lines + [summary]).joined(separator: "\n")
    }

    /// `{"findings": [{"severity", "subject", "message"}], "errors": …, "warnings": …}` on one line.
    var json: String {
        let items = findings.map { finding -> JSONDocument in
            [
                "severity": .text(finding.severity.rawValue), "subject": .text(finding.subject),
                "message": .text(finding.message),
            ]
        }
        let report: JSONDocument = [
            "findings": .array(items), "errors": .integer(errors), "warnings": .integer(warnings),
        ]
        return report.description
    }

    private var summary: String {
        if errors + warnings == 0 { return "Nothing is wrong." }
        func count(_ number: Int, _ noun: String) -> String { "\(number) \(noun)\(number == 1 ? "" : "s")" }
        return "\(count(errors, "error")), \(count(warnings, "warning"))."
    }
}

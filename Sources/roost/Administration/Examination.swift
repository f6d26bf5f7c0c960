import ChangeFeed
import Glibc
import Hub
import Identity
import Settings

/// `roost doctor`.
struct Examination {
    private let configuration: RoostConfiguration

    private let pushToken: PushToken?

    /// - Parameter pushToken: where a test push goes.
    init(_ configuration: RoostConfiguration, pushToken: PushToken? = nil) {
        self.configuration = configuration
        self.pushToken = pushToken
    }

    /// From the machine to what rests on it. True where nothing is wrong; warnings do not count.
    func run(json: Bool) async throws -> Bool {
        let url = try configuration.requireDatabaseURL(for: "roost doctor")
        let hub = ExaminedHub(
            node: configuration.nodeName, retention: .seconds(configuration.retentionHours * 3600),
            sendsPushes: configuration.push.topic != nil)
        let report = FindingsReport(
            findings: MachineExamination(configuration: configuration).run()
                + [CertificateExamination(files: configuration.certificateFiles, now: time(nil)).run()]
                + (await keys())
                + Doctor.examine(conninfo: url, for: hub)
                + (configuration.usersStatement.map { Doctor.examine(usersStatement: $0, conninfo: url) } ?? [])
                + (await PushExamination(configuration, token: pushToken).run(conninfo: url)))
        StandardOutput.line(json ? report.json : report.text)
        return report.errors == 0
    }

    private func keys() async -> [Finding] {
        do throws(ConfigurationError) {
            try configuration.requireKeys(for: "roost serve")
        } catch {
            return [Finding(.error, "token keys", error.message)]
        }
        let settings = configuration.keySettings
        let secrets = settings.secrets.isEmpty ? [] : [Finding(.good, "token keys", "jwt.secret is set.")]
        return secrets
            + (await KeyKeeper.examine(settings)).map { source in
                switch source.outcome {
                case .success(let count): Finding(.good, "token keys", "\(source.name): \(count) keys verify tokens.")
                case .failure(let problem): Finding(.error, "token keys", "\(problem).")
                }
            }
    }
}

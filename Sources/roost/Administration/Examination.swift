import ChangeFeed
import Foundation
import Hub
import Identity
import Settings
import Wire

/// `roost doctor`.
struct Examination {
    private let configuration: RoostConfiguration

    private let pushToken: PushToken?

    /// - Parameter pushToken: where a test push goes.
    init(_ configuration: RoostConfiguration, pushToken: PushToken? = nil) {
        self.configuration = configuration
        self.pushToken = pushToken
    }

    /// True where nothing is wrong; warnings do not count.
    func run(json: Bool) async throws -> Bool {
        let url = try configuration.requireDatabaseURL(for: "roost doctor")
        let findings =
            [eventLibrary, openFiles] + (await keys()) + Doctor.examine(conninfo: url)
            + (configuration.usersStatement.map { Doctor.examine(usersStatement: $0, conninfo: url) } ?? [])
            + (await PushExamination(configuration, token: pushToken).run(conninfo: url))
        json ? printJSON(findings) : printText(findings)
        return !findings.contains { $0.severity == .error }
    }

    private var eventLibrary: Finding {
        let folders = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib", "/usr/local/lib"]
        let isThere = folders.contains {
            FileManager.default.fileExists(atPath: $0 + "/libwebsockets-evlib_uv.so")
        }
        return isThere
            ? Finding(.good, "event loop", "libwebsockets has its libuv plugin.")
            : Finding(
                .error, "event loop", "libwebsockets' libuv plugin is missing; install Debian's libwebsockets-evlib-uv."
            )
    }

    private var openFiles: Finding {
        let limit = OpenFiles.raiseLimit()
        return limit >= 10_000
            ? Finding(.good, "open files", "The hub may hold \(limit) files, one for each socket.")
            : Finding(
                .warning, "open files",
                "The hub may hold only \(limit) files, one for each socket; raise the limit (LimitNOFILE= in systemd, ulimit -Hn)."
            )
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

    private func printText(_ findings: [Finding]) {
        for finding in findings {
            let mark =
                switch finding.severity {
                case .good: "ok     "
                case .warning: "warning"
                case .error: "ERROR  "
                }
            StandardOutput.line("\(mark)  \(finding.subject): \(finding.message)")
        }
    }

    private func printJSON(_ findings: [Finding]) {
        func json(_ text: String) -> String { String(decoding: JSONString.encode(text), as: UTF8.self) }
        let items = findings.map {
            "{\"severity\":\(json($0.severity.rawValue)),\"subject\":\(json($0.subject)),\"message\":\(json($0.message))}"
        }
        StandardOutput.line("[\(items.joined(separator: ","))]")
    }
}

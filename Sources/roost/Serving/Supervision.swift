import Dispatch
import Foundation
import Glibc
import Logging
import Ops
import Synchronization

/// Reports the hub's state to systemd, if systemd started it; `ServiceReport` decides what is reported and when.
///
/// Best effort, as in sd_notify(3): a manager that does not listen makes no difference to clients, and is logged once.
final class Supervision: Sendable {
    private let notifier: SystemdNotifier
    private let problem: @Sendable () -> String?
    private let heartbeats: @Sendable () -> [Int]
    private let logger: Logger
    private let state: Mutex<State>

    private struct State {
        var report: ServiceReport
        var began: ContinuousClock.Instant?
        var hasWarned = false
    }

    /// Nil unless systemd expects reports.
    ///
    /// - Parameters:
    ///   - problem: returns the reason why the hub is not ready; nil when it is.
    ///   - heartbeats: returns the heartbeats of `ServiceReport.Status`.
    init?(
        problem: @escaping @Sendable () -> String?, heartbeats: @escaping @Sendable () -> [Int], logger: Logger
    ) {
        let environment = ProcessInfo.processInfo.environment
        do throws(SystemdNotifier.Failure) {
            guard let notifier = try SystemdNotifier(environment: environment) else { return nil }
            self.notifier = notifier
        } catch {
            logger.warning("The hub does not report its status to systemd: \(error)")
            return nil
        }
        self.problem = problem
        self.heartbeats = heartbeats
        self.logger = logger
        let watchdog = SystemdWatchdog.interval(environment: environment, pid: getpid())
        state = Mutex(State(report: ServiceReport(watchdog: watchdog)))
    }

    /// Starts reporting, once a second. Call once, when the ports are open.
    func startReporting() {
        state.withLock { $0.began = .now }
        repeatLook()
    }

    private func repeatLook() {
        reportChanges()
        DispatchQueue.global().asyncAfter(deadline: .now() + .seconds(1)) { [self] in repeatLook() }
    }

    /// Reports what has changed since the last report.
    func reportChanges() {
        sendReport { report, status in report.newLines(status) }
    }

    /// Reports that the configuration is about to be reloaded.
    func reportReloading() {
        sendReport { report, _ in report.reloadLines(at: Clock.now().monotonic * 1000) }
    }

    /// Reports the outcome of a reload.
    ///
    /// - Parameter outcome: a few words such as `configuration reloaded`.
    func reportReloaded(_ outcome: String) {
        sendReport { report, status in report.reloadedLines(outcome, status) }
    }

    /// Reports that the hub is stopping.
    func reportStopping(within limit: Duration) {
        sendReport { report, _ in report.stoppingLines(within: limit) }
        reportChanges()
    }

    /// Sends the lines that `what` makes of the report. After a failure the report is unchanged, so that they are sent
    /// next time.
    private func sendReport(_ what: (inout ServiceReport, ServiceReport.Status) -> [String]) {
        let (problem, heartbeats) = (problem(), heartbeats())
        state.withLock { state in
            guard let began = state.began else { return }
            var report = state.report
            let lines = what(
                &report,
                ServiceReport.Status(problem: problem, heartbeats: heartbeats, age: ContinuousClock.now - began))
            do throws(SystemdNotifier.Failure) {
                if !lines.isEmpty { try notifier.sendLines(lines) }
                state.report = report
            } catch {
                if !state.hasWarned { logger.warning("The hub cannot report its status to systemd: \(error)") }
                state.hasWarned = true
            }
        }
    }
}

import Dispatch
import Foundation
import Glibc
import Logging
import Ops
import Synchronization

/// Reports the state of the hub to systemd, where systemd started it; `ServiceReport` decides what is reported and when.
///
/// It is best effort, as sd_notify(3) has it: a manager that does not listen changes nothing for clients, and is logged once.
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

    /// Nil where systemd did not ask for reports.
    ///
    /// - Parameters:
    ///   - problem: why the hub is not ready; nil when it is.
    ///   - heartbeats: as `ServiceReport.Status` has them.
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

    /// Begins to report. To be called once, when the ports are open; from then on the hub is looked at once a second.
    func begin() {
        state.withLock { $0.began = .now }
        repeatLook()
    }

    private func repeatLook() {
        look()
        DispatchQueue.global().asyncAfter(deadline: .now() + .seconds(1)) { [self] in repeatLook() }
    }

    /// Reports what has changed since the last report.
    func look() {
        send { report, status in report.lines(status) }
    }

    /// Reports that the configuration is about to be read again.
    func reloads() {
        send { report, _ in report.reloads(at: Clock.now().monotonic * 1000) }
    }

    /// Reports how a reload ended.
    ///
    /// - Parameter outcome: a few words, as `configuration reloaded`.
    func reloaded(_ outcome: String) {
        send { report, status in report.reloaded(outcome, status) }
    }

    /// Reports that the hub is stopping.
    func stops(within limit: Duration) {
        send { report, _ in report.stops(within: limit) }
        look()
    }

    /// Sends the lines that `what` makes of the report. What could not be sent is new the next time, too.
    private func send(_ what: (inout ServiceReport, ServiceReport.Status) -> [String]) {
        let (problem, heartbeats) = (problem(), heartbeats())
        state.withLock { state in
            guard let began = state.began else { return }
            var report = state.report
            let lines = what(
                &report,
                ServiceReport.Status(problem: problem, heartbeats: heartbeats, age: ContinuousClock.now - began))
            do throws(SystemdNotifier.Failure) {
                if !lines.isEmpty { try notifier.send(lines) }
                state.report = report
            } catch {
                if !state.hasWarned { logger.warning("The hub cannot report its status to systemd: \(error)") }
                state.hasWarned = true
            }
        }
    }
}

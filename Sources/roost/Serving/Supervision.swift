import Dispatch
import Foundation
import Glibc
import Logging
import Ops
import Synchronization

/// Keeps systemd informed of the hub, where systemd started it: see `ServiceReport` for what is said and when.
///
/// It is best effort, as sd_notify(3) has it: a manager that does not listen changes nothing for clients, and is complained
/// of once.
final class Supervision: Sendable {
    private let notifier: SystemdNotifier
    private let problem: @Sendable () -> String?
    private let beats: @Sendable () -> [Int]
    private let logger: Logger
    private let state: Mutex<State>

    private struct State {
        var report: ServiceReport
        var began: ContinuousClock.Instant?
        var hasComplained = false
    }

    /// Nil where nobody asked to be told.
    ///
    /// - Parameters:
    ///   - problem: why the hub is not ready; nil when it is.
    ///   - beats: as `ServiceReport.Standing` has them.
    init?(
        problem: @escaping @Sendable () -> String?, beats: @escaping @Sendable () -> [Int], logger: Logger
    ) {
        let environment = ProcessInfo.processInfo.environment
        do throws(SystemdNotifier.Failure) {
            guard let notifier = try SystemdNotifier(environment: environment) else { return nil }
            self.notifier = notifier
        } catch {
            logger.warning("systemd is not told how the hub fares: \(error)")
            return nil
        }
        self.problem = problem
        self.beats = beats
        self.logger = logger
        let watchdog = SystemdWatchdog.interval(environment: environment, pid: getpid())
        state = Mutex(State(report: ServiceReport(watchdog: watchdog)))
    }

    /// The ports are open. From here on the hub is looked at once a second.
    func begin() {
        state.withLock { $0.began = .now }
        goOn()
    }

    private func goOn() {
        look()
        DispatchQueue.global().asyncAfter(deadline: .now() + .seconds(1)) { [self] in goOn() }
    }

    /// Tells what has changed.
    func look() {
        tell { report, standing in report.lines(standing) }
    }

    /// The configuration is about to be read again.
    func reloads() {
        tell { report, _ in report.reloads(at: Clock.now().monotonic * 1000) }
    }

    /// - Parameter outcome: a few words, as `configuration reloaded`.
    func reloaded(_ outcome: String) {
        tell { report, standing in report.reloaded(outcome, standing) }
    }

    /// The hub takes its leave.
    func stops(within limit: Duration) {
        tell { report, _ in report.stops(within: limit) }
        look()
    }

    /// What could not be told is new the next time, too.
    private func tell(_ what: (inout ServiceReport, ServiceReport.Standing) -> [String]) {
        let (problem, beats) = (problem(), beats())
        state.withLock { state in
            guard let began = state.began else { return }
            var report = state.report
            let lines = what(
                &report, ServiceReport.Standing(problem: problem, beats: beats, age: ContinuousClock.now - began))
            do throws(SystemdNotifier.Failure) {
                if !lines.isEmpty { try notifier.send(lines) }
                state.report = report
            } catch {
                if !state.hasComplained { logger.warning("systemd cannot be told how the hub fares: \(error)") }
                state.hasComplained = true
            }
        }
    }
}

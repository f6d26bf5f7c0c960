#if canImport(Darwin)
    import Foundation
    import Synchronization

    /// Waits for the answer to the upgrade.
    final class URLSessionSocketDelegate: NSObject, URLSessionWebSocketDelegate {
        private struct State {
            /// Nil while there is no answer.
            var outcome: Outcome?
            var waiting: CheckedContinuation<TransportFailure?, Never>?
        }

        private enum Outcome {
            case open
            case failed(TransportFailure)

            var failure: TransportFailure? { if case .failed(let failure) = self { failure } else { nil } }
        }

        private let state = Mutex(State())

        /// Nil when the connection is open. For one caller.
        func outcome() async -> TransportFailure? {
            await withCheckedContinuation { continuation in
                let known: Outcome? = state.withLock { state in
                    if state.outcome == nil { state.waiting = continuation }
                    return state.outcome
                }
                if let known { continuation.resume(returning: known.failure) }
            }
        }

        func failure(_ task: URLSessionTask, _ error: (any Error)?) -> TransportFailure {
            if let status = (task.response as? HTTPURLResponse)?.statusCode, status >= 300 {
                return .refused(status: status)
            }
            if (error as? URLError)?.code == .cancelled { return .cancelled }
            return .unreachable(error?.localizedDescription ?? "The connection broke.")
        }

        private func settle(_ outcome: Outcome) {
            let waiting = state.withLock { state in
                guard state.outcome == nil else { return CheckedContinuation<TransportFailure?, Never>?.none }
                state.outcome = outcome
                defer { state.waiting = nil }
                return state.waiting
            }
            waiting?.resume(returning: outcome.failure)
        }

        func urlSession(
            _ session: URLSession, webSocketTask: URLSessionWebSocketTask, didOpenWithProtocol subprotocol: String?
        ) {
            settle(.open)
        }

        func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
            settle(.failed(failure(task, error)))
        }

        /// A redirect would be given the token.
        func urlSession(
            _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
            newRequest request: URLRequest
        ) async -> URLRequest? { nil }
    }
#endif

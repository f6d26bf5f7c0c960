#if canImport(Darwin)
    import Foundation
    import Synchronization

    /// Opens connections by URLSession, which respects the device's proxies and low-data rules.
    struct URLSessionTransport: WebSocketTransport {
        func open(_ request: WebSocketRequest) async throws(TransportFailure) -> any WebSocketConnection {
            let connection = URLSessionConnection(request)
            try await connection.opened()
            return connection
        }
    }

    typealias PlatformTransport = URLSessionTransport

    /// A connection by `URLSessionWebSocketTask`. It closes when its last reference is released.
    final class URLSessionConnection: WebSocketConnection {
        private let session: URLSession
        private let task: URLSessionWebSocketTask
        private let delegate: URLSessionSocketDelegate
        private let pending = Atomic(0)

        init(_ request: WebSocketRequest) {
            var urlRequest = URLRequest(url: request.url)
            for header in request.headers { urlRequest.setValue(header.value, forHTTPHeaderField: header.name) }
            let configuration = URLSessionConfiguration.ephemeral
            // The client has its own timeouts and its own reconnecting.
            configuration.timeoutIntervalForRequest = 60
            configuration.waitsForConnectivity = false
            delegate = URLSessionSocketDelegate()
            session = URLSession(configuration: configuration, delegate: delegate, delegateQueue: nil)
            task = session.webSocketTask(with: urlRequest)
            task.maximumMessageSize = request.maximumMessageBytes
            task.resume()
        }

        deinit { close() }

        func opened() async throws(TransportFailure) {
            let outcome = await withTaskCancellationHandler {
                await delegate.outcome()
            } onCancel: {
                task.cancel()
            }
            if let failure = outcome { throw failure }
        }

        /// The task keeps the order of its sends.
        func send(_ frame: WebSocketFrame) {
            let count = frame.count
            pending.add(count, ordering: .relaxed)
            let message: URLSessionWebSocketTask.Message =
                switch frame {
                case .text(let bytes): .string(String(decoding: bytes, as: UTF8.self))
                case .binary(let bytes): .data(Data(bytes))
                }
            // An error here ends the connection, and `receive` reports it.
            task.send(message) { [weak self] _ in self?.pending.subtract(count, ordering: .relaxed) }
        }

        var pendingBytes: Int { pending.load(ordering: .relaxed) }

        func receive() async throws(TransportFailure) -> WebSocketFrame {
            do {
                switch try await task.receive() {
                case .string(let text): return .text(Array(text.utf8))
                case .data(let data): return .binary(Array(data))
                @unknown default: return .text([])
                }
            } catch {
                let code = task.closeCode
                if code != .invalid { throw .closed(code: code.rawValue) }
                throw delegate.failure(task, error)
            }
        }

        func close() {
            task.cancel(with: .normalClosure, reason: nil)
            // Otherwise the session retains itself and its delegate forever.
            session.finishTasksAndInvalidate()
        }
    }

    /// Receives the outcome of the upgrade from URLSession.
    final class URLSessionSocketDelegate: NSObject, URLSessionWebSocketDelegate {
        private struct State {
            /// Nil until there is an outcome.
            var outcome: Outcome?
            var waiting: CheckedContinuation<TransportFailure?, Never>?
        }

        private enum Outcome {
            case open
            case failed(TransportFailure)

            var failure: TransportFailure? { if case .failed(let failure) = self { failure } else { nil } }
        }

        private let state = Mutex(State())

        /// Waits for the outcome of the upgrade; nil if the connection is open. One task may wait.
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

        /// Redirects are not followed: they would receive the token.
        func urlSession(
            _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
            newRequest request: URLRequest
        ) async -> URLRequest? { nil }
    }
#endif

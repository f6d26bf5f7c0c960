#if canImport(Darwin)
    import Foundation
    import Synchronization

    /// A connection by `URLSessionWebSocketTask`. When nobody holds it any more the connection is closed.
    final class URLSessionConnection: WebSocketConnection {
        private let session: URLSession
        private let task: URLSessionWebSocketTask
        private let delegate: URLSessionSocketDelegate
        private let pending = Atomic(0)

        init(_ request: WebSocketRequest) {
            var urlRequest = URLRequest(url: request.url)
            for header in request.headers { urlRequest.setValue(header.value, forHTTPHeaderField: header.name) }
            let configuration = URLSessionConfiguration.ephemeral
            // The client has its own clock for whoever does not answer, and its own way to come back.
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
            // An error here is one of the connection, which `receive` reports.
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
            // Otherwise the session holds itself and its delegate forever.
            session.finishTasksAndInvalidate()
        }
    }
#endif

#if os(Linux)
    import CWebSockets
    import Synchronization

    /// The thread that owns a connection's libwebsockets context. It makes all calls of libwebsockets except waking it.
    final class SocketThread {
        /// Held while a context is created or destroyed, which changes state of the whole process (OpenSSL).
        private static let setUp = Mutex(())
        /// The time limit for the hub's reply to a close frame.
        private static let closeTimeoutMicroseconds: lws_usec_t = 1_000_000

        private let target: SocketTarget
        private let shared: SocketState
        private var wsi: OpaquePointer?
        private var incoming: [UInt8] = []
        private var isOver = false
        private var isPaused = false
        private var isClosing = false
        private var failure = TransportFailure.closed(code: 1006)

        init(_ target: SocketTarget, _ shared: SocketState) {
            self.target = target
            self.shared = shared
        }

        func runConnection() {
            let me = Unmanaged.passUnretained(self).toOpaque()
            let socket = Self.setUp.withLock { _ -> UInt? in
                // By default lws writes to standard error, which belongs to the app.
                lws_set_log_level(0, nil)
                return roost_socket_create(socketCallback, me, target.isTLS ? 1 : 0).map { UInt(bitPattern: $0) }
            }
            guard let socket = socket.flatMap({ OpaquePointer(bitPattern: $0) }) else {
                return shared.connectionEnded(.unreachable("libwebsockets made no context."))
            }
            shared.setSocket(socket)
            let started = roost_socket_connect(
                socket, target.address, target.port, target.host, target.path, target.isTLS ? 1 : 0)
            if started == nil, !isOver {
                failure = .unreachable("The hub at \(target.host) cannot be reached.")
                isOver = true
            }
            while !isOver, roost_socket_service(socket) >= 0 { applyRequests() }
            shared.setSocket(nil)
            isOver = true
            Self.setUp.withLock { _ in roost_socket_destroy(socket) }
            shared.connectionEnded(failure)
        }

        /// Carries out the connection's requests.
        private func applyRequests() {
            let requests = shared.requests
            guard let wsi else {
                // The socket is not open yet, so there is no close frame to send.
                if requests.isClosing { isOver = true }
                return
            }
            if requests.isPaused != isPaused {
                isPaused = requests.isPaused
                lws_rx_flow_control(wsi, isPaused ? 0 : 1)
            }
            if requests.isClosing, !isClosing {
                isClosing = true
                // A hub that is gone does not reply.
                lws_set_timer_usecs(wsi, Self.closeTimeoutMicroseconds)
            }
            if requests.hasOutgoing || requests.isClosing { lws_callback_on_writable(wsi) }
        }

        fileprivate func handleCallback(
            _ reason: lws_callback_reasons, _ wsi: OpaquePointer, _ input: UnsafeMutableRawPointer?, _ length: Int
        ) -> Int32 {
            if isOver { return 0 }
            switch reason {
            case LWS_CALLBACK_CLIENT_APPEND_HANDSHAKE_HEADER:
                for header in target.headers {
                    guard roost_socket_header(wsi, input, length, header.name + ":", header.value) == 0 else {
                        failure = .unreachable("The token is too long for the header of an upgrade.")
                        return -1
                    }
                }
            case LWS_CALLBACK_CLIENT_ESTABLISHED:
                self.wsi = wsi
                shared.reportOpen()
                applyRequests()
            case LWS_CALLBACK_EVENT_WAIT_CANCELLED: applyRequests()
            case LWS_CALLBACK_CLIENT_WRITEABLE: return writeFrame(to: wsi)
            case LWS_CALLBACK_CLIENT_RECEIVE:
                return receivePiece(UnsafeRawBufferPointer(start: input, count: length), wsi)
            case LWS_CALLBACK_WS_PEER_INITIATED_CLOSE:
                let bytes = UnsafeRawBufferPointer(start: input, count: input == nil ? 0 : length)
                if bytes.count >= 2 { failure = .closed(code: Int(bytes[0]) << 8 | Int(bytes[1])) }
            case LWS_CALLBACK_TIMER: isOver = true
            case LWS_CALLBACK_CLIENT_CONNECTION_ERROR:
                cannotConnect(wsi, UnsafeRawBufferPointer(start: input, count: input == nil ? 0 : length))
            case LWS_CALLBACK_CLIENT_CLOSED: isOver = true
            default: break
            }
            return 0
        }

        private func cannotConnect(_ wsi: OpaquePointer, _ text: UnsafeRawBufferPointer) {
            isOver = true
            // A local failure came first, and says more.
            guard failure == .closed(code: 1006) else { return }
            let status = Int(lws_http_client_http_response(wsi))
            guard !(300..<600).contains(status) else { return failure = .refused(status: status) }
            let words = text.isEmpty ? "" : " (\(String(decoding: text, as: UTF8.self)))"
            failure = .unreachable("The hub at \(target.host) cannot be reached\(words).")
        }

        /// Sends one message each time that lws reports room in the socket.
        private func writeFrame(to wsi: OpaquePointer) -> Int32 {
            guard let frame = shared.nextToSend() else {
                guard isClosing else { return 0 }
                roost_socket_say_goodbye(wsi, 1000)
                return -1
            }
            let status: Int32
            switch frame {
            case .text(let bytes): status = roost_socket_send(wsi, bytes, bytes.count, 0)
            case .binary(let bytes): status = roost_socket_send(wsi, bytes, bytes.count, 1)
            }
            guard status == 0 else { return -1 }
            applyRequests()
            return 0
        }

        /// Adds a piece to the message, and passes the message on once it is complete.
        private func receivePiece(_ bytes: UnsafeRawBufferPointer, _ wsi: OpaquePointer) -> Int32 {
            guard incoming.count + bytes.count <= target.maximumMessageBytes else {
                failure = .unreachable("The hub sent a message of more than \(target.maximumMessageBytes) bytes.")
                roost_socket_say_goodbye(wsi, 1009)
                return -1
            }
            incoming += bytes
            guard lws_is_final_fragment(wsi) != 0, lws_remaining_packet_payload(wsi) == 0 else { return 0 }
            shared.frameReceived(lws_frame_is_binary(wsi) != 0 ? .binary(incoming) : .text(incoming))
            incoming = []
            applyRequests()
            return 0
        }
    }

    private func socketCallback(
        _ wsi: OpaquePointer?, _ reason: lws_callback_reasons, _ user: UnsafeMutableRawPointer?,
        _ input: UnsafeMutableRawPointer?, _ length: Int
    ) -> Int32 {
        guard let wsi, let context = lws_get_context(wsi), let owner = lws_context_user(context) else { return 0 }
        return Unmanaged<SocketThread>.fromOpaque(owner).takeUnretainedValue().handleCallback(
            reason, wsi, input, length)
    }
#endif

import CWebSockets
import HTTP
import Wire

/// WebSockets on the operator's port.
extension EventLoop {
    func judgeOpsUpgrade(_ head: some RequestHead) -> UpgradeVerdict {
        if let refusal = WebSocketHandshake.refusal(of: head) { return .refused(refusal) }
        guard let opsSocketHandler else { return .refused(HTTPResponse.error(404, "No WebSocket is served here")) }
        guard ops.lines.count < OpsSockets.most else {
            return .refused(
                HTTPResponse.error(503, "\(OpsSockets.most) operators are connected already; close a page first"))
        }
        let request = HTTPRequest(head)
        if let refusal = opsSocketHandler.refusal(of: request) { return .refused(refusal) }
        return .admitted(.operators(request))
    }

    func opsEstablished(_ wsi: OpaquePointer, _ user: UnsafeMutableRawPointer, _ request: HTTPRequest) {
        let id = ops.open(wsi, second: second)
        OpsSockets.store(id, in: user)
        let address = IPAddress(peerOf: Int32(lws_get_socket_fd(wsi)))?.text ?? ""
        opsSocketHandler?.opened(OpsSocket(id: id, address: address, inbox: inbox), by: request)
    }

    /// One piece of a message, or all of it. Negative closes the socket.
    func opsReceived(_ user: UnsafeMutableRawPointer?, _ wsi: OpaquePointer, _ bytes: UnsafeRawBufferPointer) -> Int32 {
        guard let id = OpsSockets.id(user), ops.lines[id] != nil else { return -1 }
        ops.lines[id]?.lastHeard = second
        ops.lines[id]?.partial.append(contentsOf: bytes)
        guard let size = ops.lines[id]?.partial.count, size <= OpsSockets.maximumMessageBytes else { return -1 }
        guard lws_is_final_fragment(wsi) != 0, lws_remaining_packet_payload(wsi) == 0 else { return 0 }
        let message = ops.lines[id]?.partial ?? []
        ops.lines[id]?.partial = []
        if lws_frame_is_binary(wsi) == 0 { opsSocketHandler?.received(message, from: id) }
        return 0
    }

    func tellOperator(_ id: OpsSocket.ID, _ frame: Frame) {
        guard let line = ops.lines[id] else { return }
        guard line.pendingBytes + frame.bytes.count <= OpsSockets.maximumPendingBytes else { return cutOff(line) }
        ops.lines[id]?.pending.append(frame.bytes)
        ops.lines[id]?.pendingBytes += frame.bytes.count
        lws_callback_on_writable(line.wsi)
    }

    /// Negative closes the socket.
    func opsWritable(_ user: UnsafeMutableRawPointer?) -> Int32 {
        guard let id = OpsSockets.id(user), let line = ops.lines[id], let bytes = line.pending.first else { return 0 }
        guard lws_partial_buffered(line.wsi) == 0 else {
            lws_callback_on_writable(line.wsi)
            return 0
        }
        ops.lines[id]?.pending.removeFirst()
        ops.lines[id]?.pendingBytes -= bytes.count
        guard roost_write_framed(line.wsi, bytes, bytes.count) >= 0 else { return -1 }
        if line.pending.count > 1 { lws_callback_on_writable(line.wsi) }
        return 0
    }

    func opsClosed(_ user: UnsafeMutableRawPointer?) {
        guard let id = OpsSockets.id(user) else { return }
        user?.storeBytes(of: 0, as: Int32.self)
        ops.lines[id] = nil
        opsSocketHandler?.closed(id)
    }

    /// Begins to tell the handler of each second: half a second after the loops have published their figures, so that none
    /// of them is just about to. Only the loop with the operator's port does.
    func startOpsTimer() {
        let timer = UnsafeMutablePointer<uv_timer_t>.allocate(capacity: 1)
        uv_timer_init(loop, timer)
        timer.pointee.data = Unmanaged.passUnretained(self).toOpaque()
        uv_timer_start(timer, { handle in EventLoop.of(handle?.pointee.data)?.tickOps() }, 1500, 1000)
    }

    private func tickOps() {
        counters.turnBegins()
        for line in ops.lines.values where second - line.lastHeard > OpsSockets.idleTimeout { cutOff(line) }
        opsSocketHandler?.tick()
        endTurn()
    }

    private func cutOff(_ line: OpsSockets.Line) {
        lws_set_timeout(line.wsi, PENDING_TIMEOUT_USER_OK, LWS_TO_KILL_ASYNC)
        lws_cancel_service(lws_get_context(line.wsi))
    }
}
